"""The samples that bench_export wrote, in memory or for a DataLoader."""
import numpy
import torch

WINDOW_BATCHES = 100  # the samples of so many batches are sorted by length before they are divided into batches


def numbers(file, dtype):
    return torch.from_numpy(numpy.fromfile(file, dtype=dtype))


class Images:
    """Images with standardised channels (by the statistics of the training part), or in [0, 1] if the image is the target.
    `divisor` is the number of values over which the mean loss of a batch is computed."""

    def __init__(self, folder, part, case, channels_last):
        shape = [-1, *(case["input"][name] for name in ("channels", "height", "width"))]
        self.reconstructs = case["task"] == "reconstruction"
        mean, deviation = 0, 255
        if not self.reconstructs:
            train = numbers(folder / "train.images", numpy.uint8).view(shape).double()
            mean, deviation = train.mean((0, 2, 3), keepdim=True), train.std((0, 2, 3), correction=0, keepdim=True)
        images = ((numbers(folder / f"{part}.images", numpy.uint8).view(shape).double() - mean) / deviation).to(case.get("dtype", torch.float32))
        self.images = images.contiguous(memory_format=torch.channels_last) if channels_last else images
        self.labels = numbers(folder / f"{part}.labels", numpy.int32).long()

    def __len__(self):
        return len(self.labels)

    def batch(self, indices):
        indices = indices.to(self.images.device)
        images = self.images.index_select(0, indices)
        return (images,), images if self.reconstructs else self.labels.index_select(0, indices)

    def sample(self, place):
        return self.images[place], self.labels[place]

    def collate(self, samples):
        images, labels = torch.utils.data.default_collate(samples)
        return (images,), images if self.reconstructs else labels

    def divisor(self, indices):
        return len(indices) * (self.images[0].numel() if self.reconstructs else 1)

    def order(self, batch, generator):
        return torch.randperm(len(self), generator=generator)

    def move_to(self, device, static):
        self.images, self.labels = self.images.to(device), self.labels.to(device)

    evaluation_order = None


class Sequences:
    def __init__(self, folder, name):
        self.tokens = numbers(folder / f"{name}.tokens", numpy.int32).long()
        offsets = numbers(folder / f"{name}.offsets", numpy.int64)
        self.begins, self.lengths = offsets[:-1], offsets.diff()
        self.multiple = 1
        self.tokens = torch.cat([self.tokens, torch.zeros(1, dtype=torch.long)])  # padding
        self.columns = None  # as many as the longest sequence of a batch

    def move_to(self, device):
        """Move to the device. Every batch is then as long as the longest sequence, so that shapes never change and no
        length is read by the host."""
        self.columns = max(1, int(self.lengths.max()))
        self.tokens, self.begins, self.lengths = (of.to(device) for of in (self.tokens, self.begins, self.lengths))

    def padded(self, indices, first=0, last=0):
        indices = indices.to(self.tokens.device)
        lengths = self.lengths.index_select(0, indices) - first - last
        length = self.columns or max(1, int(lengths.max()))
        if self.multiple > 1:
            length = min(-(-length // self.multiple) * self.multiple, int(self.lengths.max()) - first - last)
        columns = torch.arange(length, device=indices.device)
        at = self.begins.index_select(0, indices).add(first)[:, None] + columns
        at.masked_fill_(columns >= lengths[:, None], len(self.tokens) - 1)
        return self.tokens.index_select(0, at.flatten()).view(at.shape)

    def one(self, place):
        begin = int(self.begins[place])
        return self.tokens[begin:begin + int(self.lengths[place])]


def pad(sequences):
    return torch.nn.utils.rnn.pad_sequence(sequences, batch_first=True)


class Texts(Images):
    def __init__(self, folder, part, case, channels_last):
        self.texts, self.labels = Sequences(folder, part), numbers(folder / f"{part}.labels", numpy.int32).long()

    def batch(self, indices):
        return (self.texts.padded(indices),), self.labels.index_select(0, indices.to(self.labels.device))

    def sample(self, place):
        return self.texts.one(place), self.labels[place]

    def collate(self, samples):
        return (pad([text for text, _ in samples]),), torch.stack([label for _, label in samples])

    def divisor(self, indices):
        return len(indices)

    def move_to(self, device, static):
        """The host pads texts, unless shapes must not change."""
        if static:
            self.texts.move_to(device)
            self.labels = self.labels.to(device)


class Pairs:
    """Pairs of a source and a target. The network reads the target without its last token and predicts it without its first.
    A batch has pairs of similar length."""

    def __init__(self, folder, part, case, channels_last):
        self.source, self.target = Sequences(folder, f"{part}.source"), Sequences(folder, f"{part}.target")

    def __len__(self):
        return len(self.source.lengths)

    def batch(self, indices):
        return (self.source.padded(indices), self.target.padded(indices, last=1)), self.target.padded(indices, first=1)

    def sample(self, place):
        return self.source.one(place), self.target.one(place)

    def collate(self, samples):
        targets = [target for _, target in samples]
        return (pad([source for source, _ in samples]), pad([t[:-1] for t in targets])), pad([t[1:] for t in targets])

    def divisor(self, indices):
        return int(self.target.lengths.index_select(0, indices).sum()) - len(indices)

    def move_to(self, device, static):
        """Nothing to do: the host pads pairs."""

    def repeat_shapes(self):
        """Pad batches to the next multiple of four, so that shapes repeat."""
        self.source.multiple = self.target.multiple = 4

    def keys(self):
        target, source = self.target.lengths, self.source.lengths
        return target * (2 << 20) + torch.where(target % 2 == 1, source, -source)

    def order(self, batch, generator):
        order, keys = torch.randperm(len(self), generator=generator), self.keys()
        batches = len(order) // batch
        if batches == 0:
            return order
        whole = order[:batches * batch]
        windows = [window[keys[window].argsort(stable=True)] for window in whole.split(WINDOW_BATCHES * batch)]
        rows = torch.randperm(batches, generator=generator)
        columns = torch.rand(batches, batch, generator=generator, dtype=torch.float64).argsort(dim=1, stable=True)
        shuffled = torch.cat(windows).view(batches, batch)[rows].gather(1, columns).flatten()
        return torch.cat([shuffled, order[batches * batch:]])

    @property
    def evaluation_order(self):
        return self.keys().argsort(stable=True)


def read_part(folder, part, case, channels_last):
    if case["task"] == "translation":
        return Pairs(folder, part, case, channels_last)
    return (Texts if case["input"]["vocabulary"] else Images)(folder, part, case, channels_last)
