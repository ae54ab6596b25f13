"""Part "tests" of tools/check-gpu: runs the test programs."""
from gpu_check.limits import Failed

PROGRAMS = ["tests_runner", "tests_parity"]
ON_A_GPU = "on a GPU*"  # names of the tests that need a GPU


def failed_cases(output):
    blocks = [block for block in output.split(79 * "=") if "ERROR: " in block]
    return sorted({line.strip() for block in blocks for line in block.splitlines() if line.startswith("TEST CASE:")})


def tests(options, clock):
    """Run the tests that need a GPU first and alone: a crash there hides no other result. Run the rest two at a time."""
    runner, parity = (options.build / "tests" / "runner" / name for name in PROGRAMS)
    if options.rehearse:
        groups = [[[runner, "-tc=*tf32*,*device*"]]]
    else:
        groups = [[[runner, "-tc=" + ON_A_GPU]], [[runner, "-tce=" + ON_A_GPU], [parity]]]
    found, wrong, output = {"passed": 0, "failed": 0, "skipped": 0}, [], ""
    for group in groups:
        for process in [clock.start(*command) for command in group]:
            try:
                text = clock.finish(process, fine=(0, 1))
            except Failed as error:
                wrong.append(str(error))
                text = error.output
            counts = [line.split("|") for line in text.splitlines() if "test cases:" in line]
            for _, passed, failed, *_ in counts:
                found["passed"] += int(passed.split()[0])
                found["failed"] += int(failed.split()[0])
            found["skipped"] += text.count("skipped: ")
            if process.returncode != 0:
                output += text
    wrong += failed_cases(output)
    if wrong or found["failed"] or not found["passed"]:
        raise Failed("\n".join(wrong) or "no test passed", found, output)
    return found
