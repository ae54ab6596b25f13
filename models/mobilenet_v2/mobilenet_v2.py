"""MobileNetV2 in PyTorch: torchvision's network and first weights. A module has the number of the layer in trainyard."""
from torch import nn

# expansion, outputs, repeats, stride
GROUPS = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]


def make_divisible(value, divisor=8):
    rounded = max(divisor, int(value + divisor / 2) // divisor * divisor)
    return rounded + divisor if rounded < 0.9 * value else rounded


class Add(nn.Module):
    def forward(self, x, skip):
        return x + skip


class Mean(nn.Module):
    def forward(self, x):
        return x.mean((2, 3))


class MobileNetV2(nn.Module):
    def __init__(self, values, shape):
        super().__init__()
        width, small = values["width"], values["stem"] == "small"
        depth, layers, self.skips = shape["channels"], [], set()

        def convolution(inputs, outputs, size, stride=1, groups=1):
            return [nn.Conv2d(inputs, outputs, size, stride, size // 2, groups=groups, bias=False), nn.BatchNorm2d(outputs)]

        outputs = make_divisible(32 * width)
        layers += [*convolution(depth, outputs, 3, 1 if small else 2), nn.ReLU6()]
        depth = outputs
        for expansion, channels, repeats, stride in GROUPS:
            for i in range(repeats):
                outputs, hidden = make_divisible(channels * width), depth * expansion
                step = stride if i == 0 and not (small and channels == 24) else 1
                begin = len(layers)
                if expansion > 1:
                    layers += [*convolution(depth, hidden, 1), nn.ReLU6()]
                layers += [*convolution(hidden, hidden, 3, step, hidden), nn.ReLU6(), *convolution(hidden, outputs, 1)]
                if step == 1 and depth == outputs:
                    layers.append(Add())
                    self.skips.add(begin)
                depth = outputs
        outputs = make_divisible(1280 * max(1.0, width))
        layers += [*convolution(depth, outputs, 1), nn.ReLU6(), Mean(), nn.Dropout(values["dropout"]),
                   nn.Linear(outputs, shape["classes"])]
        for place, layer in enumerate(layers):
            self.add_module(str(place), layer)
            if isinstance(layer, nn.Conv2d):
                nn.init.kaiming_normal_(layer.weight, mode="fan_out")
        nn.init.normal_(layers[-1].weight, 0, 0.01)
        nn.init.zeros_(layers[-1].bias)

    def forward(self, x):
        skip = None
        for place, layer in enumerate(self.children()):
            if place in self.skips:
                skip = x
            x = layer(x, skip) if isinstance(layer, Add) else layer(x)
        return x


def build(values, shape):
    return MobileNetV2(values, shape)
