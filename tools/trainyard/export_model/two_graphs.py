"""The evaluation graph beside the training graph in one file. It has the weights of the training graph."""
import json
import zipfile

FOLDER = "trainyard/evaluation"
CONSTANTS = "model_constants_config.json"


def add_entry(archive, name, content):
    """Add an entry with the date that torch.export.save gives its own, so that the same network gives the same bytes."""
    archive.writestr(zipfile.ZipInfo(name), content)


def add_evaluation(file, saved):
    """Add the graph and the constants of `saved` to `file`. torch.export.save has written both."""
    with zipfile.ZipFile(saved) as other, zipfile.ZipFile(file, "a", zipfile.ZIP_STORED) as archive:
        source, root = (each.namelist()[0].partition("/")[0] for each in (other, archive))
        model = other.read(f"{source}/models/model.json")
        inputs = json.loads(model)["graph_module"]["signature"]["input_specs"]
        names = {spec["tensor_constant"]["tensor_constant_name"] for spec in inputs if "tensor_constant" in spec}
        config = json.loads(other.read(f"{source}/data/constants/{CONSTANTS}"))["config"]
        config = {name: about for name, about in config.items() if name in names}  # without buffers that are not saved
        add_entry(archive, f"{root}/{FOLDER}/model.json", model)
        add_entry(archive, f"{root}/{FOLDER}/constants/{CONSTANTS}", json.dumps({"config": config}))
        for name in {about["path_name"] for about in config.values()}:
            add_entry(archive, f"{root}/{FOLDER}/constants/{name}", other.read(f"{source}/data/constants/{name}"))
