"""What `trainyard sql` answers about a yard, for the scripts here."""

import json
import subprocess


def rows(trainyard: str, yard, statement: str) -> list[dict]:
    """A dict a row, of its columns by name."""
    command = [trainyard, "sql", statement, "--yard", str(yard), "--format", "json"]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
