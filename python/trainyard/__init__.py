"""Records a PyTorch training for trainyard: docs/python.md.

    import trainyard
    run = trainyard.start(model, optimizer, loader=train_loader, scheduler=scheduler)
    for epoch in run.epochs(10):
        for x, y in train_loader:
            loss = step(x, y)
            run.add("loss", loss.item() * len(y), len(y))
        run.validation("loss", total, count)
    run.finish()

It observes what was trained. A value that was not observed is never stated."""
from .run import Run, start

__all__ = ["Run", "start"]
