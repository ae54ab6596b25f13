"""Parts "matrix" and "nccl" of tools/check-gpu: train the models and compare each strategy with one process."""
import json
import os

from gpu_check.limits import Clock, Failed, last_lines

MODELS = {  # data set, and keys for a tiny size; the slowest models are last
    "mlp": ("synthetic-digits", "hidden = [16]"),
    "cnn": ("synthetic-digits", ""),
    "nbow": ("imdb", ""),
    "conv-autoencoder": ("synthetic-digits", ""),
    "vgg11": ("synthetic-color-digits", "width = 4"),
    "seq2seq": ("multi30k", "embedding = 16\nhidden = 16"),
}
STRATEGIES = {
    "ddp": "[strategy.ddp]\nreplicas = 2\n",
    "mp-ddp": '[strategy.mp-ddp]\nreplicas = 2\nstages = 2\nschedule = "1f1b"\nmicro_batches = 2\n',
}
GRADIENT_TOLERANCE, LOSS_TOLERANCE = 1e-4, 1e-5  # of the parity check in float32: db/README.md, probe_layer


def matrix_file(options, name, strategies, epochs, communicator):
    def section(model):
        dataset, tiny = MODELS[model]
        return f'[model.{model}]\ndataset = "{dataset}"\n{tiny if options.rehearse else ""}\n'

    return f"""name = "{name}"
[data]
imdb = "synthetic"
multi30k = "synthetic"
[matrix]
model = {json.dumps(options.models)}
strategy = {json.dumps(strategies)}
seed = [0]
[defaults]
epochs = {1 if options.rehearse else epochs}
train_samples = {96 if options.rehearse else 1920}
batch = {32 if options.rehearse else 128}
{"".join(section(model) for model in options.models)}{"".join(STRATEGIES.get(strategy, "") for strategy in strategies)}[machine]
accelerator = "{"cpu" if options.rehearse else "cuda"}"
communicator = "{communicator}"
progress_timeout = {int(60 * options.patience)}  # for a rank that hangs
"""


def preloaded_nccl(options):
    """An NCCL that allows two ranks on one GPU, if the bundle has one."""
    found = [] if options.rehearse else sorted((options.bundle / "extra").glob("libnccl*.so*"))
    return found[0].resolve() if found else None


def ask(options, clock, sql):
    return json.loads(clock.run(options.build / "trainyard", "sql", sql, "--format", "json", "--yard", options.yard))


def what_was_trained(options, clock, name):
    runs = ask(options, clock, f"""SELECT s.model, s.strategy, s.status, s.failure, f.epoch_train_seconds, f.train_loss,
        f.epoch_energy_joules, s.peak_device_bytes, s.times_count,
        (SELECT p.start_extra ->> '$.transport' FROM process p WHERE p.run_key = s.run_key AND p.started IS NOT NULL LIMIT 1)
          AS transport,
        (SELECT COALESCE(p.start_extra ->> '$.gpu.why_not_replayed', 'replayed') FROM process p
         WHERE p.run_key = s.run_key AND p.start_extra ->> '$.gpu' IS NOT NULL LIMIT 1) AS steps
      FROM run_summary s LEFT JOIN final_metrics f USING (run_key, experiment) WHERE s.experiment = '{name}'""")
    parity = ask(options, clock, f"""
        WITH layer AS (
          SELECT l.run_key, l.attempt, l.rank, l.step,
            MAX(l.difference / (1e-30 + l.gradient_norm + 0.01 * p.gradient_norm)) AS gradient
          FROM probe_layer l JOIN probe p USING (run_key, attempt, rank, step) GROUP BY 1, 2, 3, 4)
        SELECT r.model, r.strategy, MAX(ABS(p.loss - p.reference_loss) / ABS(p.reference_loss)) AS loss,
          MAX(layer.gradient) AS gradient, COUNT(*) AS steps
        FROM probe p JOIN run_in_experiment r USING (run_key) JOIN layer USING (run_key, attempt, rank, step)
        WHERE p.reference_loss IS NOT NULL AND r.experiment = '{name}' GROUP BY r.model, r.strategy""")
    for row in parity:
        row["holds"] = None not in (row["loss"], row["gradient"]) and (
            row["loss"] <= LOSS_TOLERANCE and row["gradient"] <= GRADIENT_TOLERANCE)
    return {"runs": runs, "parity": parity}


def train(options, clock, name, strategies, epochs, communicator="auto", environment=None):
    """Train the models under `strategies`. Returns the runs and the results of the parity check."""
    file = options.yard.parent / f"{name.replace(' ', '-')}.toml"
    file.write_text(matrix_file(options, name, strategies, epochs, communicator))
    spare = Clock(clock.end + 10)  # extra time to read the results of a run that was stopped
    late, said = None, ""
    try:
        said = clock.run(options.build / "trainyard", "run", file, "--yard", options.yard, "--no-report", fine=(0, 1),
                         env=environment)
    except Failed as error:
        late, said = str(error), error.output
        if not (options.yard / "results.db").exists():
            raise
    outcome = what_was_trained(options, spare, name)
    wrong = [late] if late else []
    wrong += [f"{run['model']} {run['strategy']}: {run['failure'] or run['status']}" for run in outcome["runs"]
              if run["status"] != "finished"]
    wrong += [f"{row['model']} {row['strategy']}: differs from the training in one process" for row in outcome["parity"] if not row["holds"]]
    if wrong or len(outcome["runs"]) != len(strategies) * len(options.models):
        raise Failed("\n".join(wrong) or last_lines(said), outcome, said)
    return outcome


def matrix(options, clock):
    return train(options, clock, "gpu check", ["single", "ddp", "mp-ddp"], epochs=3)


def nccl(options, clock):
    """Train two replicas with NCCL. On one GPU that needs another NCCL library than the wheel's."""
    library = preloaded_nccl(options)
    if library is None:
        return {"left_out": "the bundle has no libnccl.so.2 from 2.30 on; add it with tools/bundle --with"}
    return train(options, clock, "gpu check by NCCL", ["ddp"], epochs=1, communicator="nccl",
                 environment={**os.environ, "LD_PRELOAD": str(library), "NCCL_MULTI_RANK_GPU_ENABLE": "1"})
