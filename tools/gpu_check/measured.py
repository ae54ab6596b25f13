"""Part "benchmark" of tools/check-gpu: runs bench/training."""
import json
import shutil

from gpu_check.limits import ROOT, Failed


def benchmark(options, clock):
    """Seconds per epoch of PyTorch / those of trainyard, on this device. The first pass over the models omits torch.compile,
    which compiles for long. The second pass has it, and further passes repeat all while there is time."""
    folder, found, wrong, output = options.yard.parent / "gpu-benchmark", {}, {}, ""
    shutil.rmtree(folder, ignore_errors=True)
    quick = [style for style in options.styles if style != "compile"]
    passes = [(1, quick)] if quick else []
    passes += [(1, options.styles)] if quick != options.styles else []
    passes += [] if options.rehearse else [(2, options.styles), (3, options.styles)]
    for rounds, styles in passes:
        for model in options.models:
            if clock.left() < 5:
                break
            try:
                found[model], text = measure(options, clock, folder, model, rounds, styles)
                missing = [style for style in styles if style not in found[model]["against"]]
                if missing:
                    raise Failed(f"PyTorch {', '.join(missing)} did not train", output=text)
            except Failed as error:
                if model not in found or clock.left() > 5:
                    wrong[model] = f"{model}: {error}"
                output += error.output
    wrong |= {model: f"{model}: no time was left" for model in options.models if model not in {**found, **wrong}}
    if wrong:
        raise Failed("\n".join(wrong.values()), list(found.values()), output)
    return list(found.values())


def measure(options, clock, folder, model, rounds, styles):
    output = options.yard.parent / "gpu-benchmark.json"
    output.unlink(missing_ok=True)
    size = ["--device", "cpu", "--epochs", 2] if options.rehearse else ["--device", "cuda", "--epochs", 12, "--times-samples", 4]
    text = clock.run(options.python, ROOT / "bench" / "training", "--build", options.build, "--python", options.python,
                     "--models", model, "--styles", *styles, "--replicas", 1, "--rounds", rounds, "--agree", "epoch", *size,
                     "--yard", folder / model, "--output", output)
    return json.loads(output.read_text())["comparisons"][0], text
