"""Records a PyTorch training for trainyard: docs/python.md.

    run = trainyard.start(model, optimizer, loader=train_loader, scheduler=scheduler)
    for epoch in run.epochs(10):
        for x, y in train_loader:
            loss = step(x, y)
            run.add("loss", loss.item() * len(y), len(y))
        run.validation("loss", total, count)
    run.finish()

It observes what was trained. A value that was not observed is never stated.

    trainyard.load("yard").verdicts    # results as frames, without PyTorch too
    trainyard.compare(trainyard.read("logs"), arm="optimizer", baseline="sgd", metric="val_loss", pair="seed")"""
from importlib.util import find_spec

from .files import read
from .frames import Yard, compare

load = Yard
__all__ = ["Yard", "compare", "load", "read"]
if find_spec("torch"):
    from .run import Run, start
    __all__ += ["Run", "start"]
