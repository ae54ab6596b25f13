"""Query a yard with `trainyard sql`."""

import json
import subprocess


def rows(trainyard: str, yard, statement: str) -> list[dict]:
    """The rows as dicts by column name."""
    command = [trainyard, "sql", statement, "--yard", str(yard), "--format", "json"]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
