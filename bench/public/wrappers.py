"""Wrappers of public networks: what `trainyard export wrappers.py:NAME` needs, as a first user would write it.

PUBLIC_SOURCES is a folder with one folder OWNER+NAME per repository; each network is built from its unchanged source. The
packages come from pip. With WITHOUT_RANDOM=1 nothing draws random numbers, so that eager PyTorch can be compared."""
import ast
import importlib.util
import math
import os
import pathlib
import sys
import types

import torch
from torch import nn
from torch.nn import functional as F

SOURCES = pathlib.Path(os.environ["PUBLIC_SOURCES"])
NETWORKS = {}  # name: repository or package


def network(source, name=None):
    def kept(function):
        NETWORKS[name or function.__name__] = source
        globals()[name or function.__name__] = quiet_one = lambda batch: quiet(function(batch))
        return quiet_one

    return kept


def quiet(values):
    """Without random numbers, if the environment asks for that."""
    if os.environ.get("WITHOUT_RANDOM"):
        torch.randn_like = torch.zeros_like
        for module in values[0].modules():
            if isinstance(getattr(module, "cfg", None), dict):
                module.cfg.update({key: 0.0 for key in module.cfg if "drop" in key})
            for name in ("p", "dropout", "drop_prob", "dropout_p", "prob", "drop_path", "attention_dropout", "layerdrop",
                         "drop_rate", "dropout_prob", "attn_pdrop", "attn_drop"):
                if isinstance(getattr(module, name, None), float):
                    setattr(module, name, 0.0)
    return values


def package(name, folder):
    """A package without its __init__, which imports more than the networks need."""
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [str(SOURCES / folder)]


def file(path, name):
    spec = importlib.util.spec_from_file_location(name, SOURCES / path)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def classes(path, *names):
    """Classes and functions of a script that would train if it were imported."""
    nodes = [
        node for node in ast.parse((SOURCES / path).read_text()).body
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and not node.decorator_list
    ]
    space = dict(torch=torch, nn=nn, F=F, math=math, Tensor=torch.Tensor, Transformer=nn.Transformer, device="cpu")
    for node in nodes:
        exec(compile(ast.Module([node], []), path, "exec"), space)
    return [space[name] for name in names]


class Calls(nn.Module):
    """The network, called in another way."""
    def __init__(self, network, call):
        super().__init__()
        self.network, self.call = network, call

    def forward(self, *inputs):
        return self.call(self.network, *inputs)


def images(source, name, make, size=32, channels=3):
    network(source, name)(lambda batch: (make(), torch.randn(batch, channels, size, size)))


def text_of(batch, length=32, words=69):
    return torch.randint(1, words, (batch, length))


def from_folder(source, prefix, folder, path, *sizes):
    """A network of the folder `models` of a repository. `path` is FILE.CLASS."""
    file_name, cls = path.split(".")

    def make():
        name = prefix + "_models"
        if name not in sys.modules:
            package(name, folder)
        return getattr(importlib.import_module(f"{name}.{file_name}"), cls)(*sizes)

    images(source, f"{prefix}_{cls.lower()}", make)


for given in [["lenet.LeNet"], ["vgg.VGG", "VGG11"], ["resnet.ResNet18"], ["preact_resnet.PreActResNet18"], ["googlenet.GoogLeNet"],
              ["densenet.densenet_cifar"], ["resnext.ResNeXt29_2x64d"], ["mobilenet.MobileNet"], ["mobilenetv2.MobileNetV2"],
              ["dpn.DPN26"], ["senet.SENet18"], ["shufflenetv2.ShuffleNetV2", 0.5], ["efficientnet.EfficientNetB0"],
              ["regnet.RegNetX_200MF"], ["dla_simple.SimpleDLA"], ["pnasnet.PNASNetA"]]:
    from_folder("kuangliu/pytorch-cifar", "cifar", "kuangliu+pytorch-cifar/models", *given)

for given in [["squeezenet.squeezenet"], ["mobilenet.mobilenet"], ["shufflenet.shufflenet"], ["shufflenetv2.shufflenetv2"],
              ["senet.seresnet18"], ["googlenet.googlenet"], ["rir.resnet_in_resnet"], ["stochasticdepth.stochastic_depth_resnet18"],
              ["wideresidual.wideresnet", 10, 2]]:
    from_folder("weiaicunzai/pytorch-cifar100", "cifar100", "weiaicunzai+pytorch-cifar100/models", *given)


def from_vit_pytorch(name, module, cls, size=32, **given):
    def make():
        if "vit_pytorch" not in sys.modules:
            package("vit_pytorch", "lucidrains+vit-pytorch/vit_pytorch")
        return getattr(importlib.import_module("vit_pytorch." + module), cls)(num_classes=10, **given)

    images("lucidrains/vit-pytorch", name, make, size)


usual = dict(image_size=32, patch_size=8, dim=64, depth=2, heads=4, mlp_dim=128)
from_vit_pytorch("vit", "vit", "ViT", dropout=0.1, emb_dropout=0.1, **usual)
for given in ("simple_vit", "simple_vit_with_register_tokens", "simple_vit_with_qk_norm", "simple_flash_attn_vit",
              "simple_vit_with_value_residual"):
    from_vit_pytorch(given, given, "SimpleViT", **usual)
for given in ("parallel_vit", "vit_for_small_dataset", "vit_with_patch_dropout", "vit_with_patch_merger"):
    from_vit_pytorch(given, given, "ViT", **usual)
from_vit_pytorch("deepvit", "deepvit", "DeepViT", **usual)
from_vit_pytorch("cait", "cait", "CaiT", cls_depth=1, **usual)
from_vit_pytorch("pit", "pit", "PiT", **{**usual, "depth": (1, 1)})
from_vit_pytorch("nest", "nest", "NesT", image_size=32, patch_size=4, dim=32, heads=2, num_hierarchies=2, block_repeats=(1, 1))
from_vit_pytorch("cvt", "cvt", "CvT", s1_emb_dim=16, s2_emb_dim=32, s3_emb_dim=64, s3_depth=2)
from_vit_pytorch("xcit", "xcit", "XCiT", cls_depth=1, local_patch_kernel_size=3, **usual)
from_vit_pytorch("max_vit", "max_vit", "MaxViT", dim=32, depth=(1, 1), window_size=4, dim_head=16)
from_vit_pytorch("levit", "levit", "LeViT", size=64, image_size=64, dim=(32, 48), depth=1, heads=(2, 3), mlp_mult=2, stages=2)
from_vit_pytorch("mobile_vit",
                 "mobile_vit",
                 "MobileViT",
                 size=64,
                 image_size=(64, 64),
                 dims=[32, 40, 48],
                 channels=[8, 8, 16, 16, 24, 24, 32, 32, 40, 40, 64])
from_vit_pytorch("rvt", "rvt", "RvT", **usual)
from_vit_pytorch("cross_vit",
                 "cross_vit",
                 "CrossViT",
                 size=48,
                 image_size=48,
                 sm_dim=32,
                 lg_dim=48,
                 sm_patch_size=12,
                 lg_patch_size=16,
                 sm_enc_heads=2,
                 lg_enc_heads=2,
                 lg_enc_depth=1,
                 depth=1,
                 sm_enc_mlp_dim=64,
                 lg_enc_mlp_dim=64)


@network("lucidrains/vit-pytorch")
def cct(batch):
    package("vit_pytorch", "lucidrains+vit-pytorch/vit_pytorch")
    from vit_pytorch.cct import CCT
    return CCT(img_size=32,
               embedding_dim=64,
               n_conv_layers=1,
               num_layers=2,
               num_heads=4,
               mlp_ratio=2.0,
               num_classes=10,
               kernel_size=3,
               stride=1,
               padding=1,
               pooling_kernel_size=3,
               pooling_stride=2,
               pooling_padding=1), torch.randn(batch, 3, 32, 32)


@network("pytorch/examples")
def mnist(batch):
    Net, = classes("pytorch+examples/mnist/main.py", "Net")
    return Net(), torch.randn(batch, 1, 28, 28)


@network("pytorch/examples")
def mnist_rnn(batch):
    Net, = classes("pytorch+examples/mnist_rnn/main.py", "Net")
    return Net(), torch.randn(batch, 1, 28, 28)


@network("pytorch/examples")
def vae(batch):
    VAE, = classes("pytorch+examples/vae/main.py", "VAE")

    def loss(outputs, images):
        image, mean, log_variance = outputs
        divergence = -0.5 * (1 + log_variance - mean.pow(2) - log_variance.exp()).sum(1)
        return F.binary_cross_entropy(image, images.flatten(1), reduction="none").sum(1) + divergence

    return VAE(), torch.rand(batch, 1, 28, 28), "reconstruction", loss


@network("pytorch/examples")
def fast_neural_style(batch):
    TransformerNet = file("pytorch+examples/fast_neural_style/neural_style/transformer_net.py", "transformer_net").TransformerNet
    return TransformerNet(), torch.randn(batch, 3, 32, 32), "reconstruction"


@network("pytorch/examples")
def word_lstm(batch):
    RNNModel, = classes("pytorch+examples/word_language_model/model.py", "RNNModel")
    return Calls(RNNModel("LSTM", 69, 32, 32, 2, dropout=0.2, tie_weights=True),
                 lambda n, x: n(x.t(), n.init_hidden(x.size(0)))[0].view(x.size(1), x.size(0), -1).transpose(0, 1)), text_of(
                     batch), "language-model"


@network("pytorch/examples")
def word_gru(batch):
    RNNModel, = classes("pytorch+examples/word_language_model/model.py", "RNNModel")
    return Calls(RNNModel("GRU", 69, 32, 32, 1, dropout=0.0),
                 lambda n, x: n(x.t(), n.init_hidden(x.size(0)))[0].view(x.size(1), x.size(0), -1).transpose(0, 1)), text_of(
                     batch), "language-model"


@network("pytorch/examples")
def word_transformer(batch):
    source = "pytorch+examples/word_language_model/model.py"
    _, Transformer = classes(source, "PositionalEncoding", "TransformerModel")
    return Calls(Transformer(69, 32, 2, 64, 2, dropout=0.2),
                 lambda n, x: n(x.t()).transpose(0, 1)), text_of(batch), "language-model"


@network("pytorch/examples")
def translator(batch):
    _, Translator = classes("pytorch+examples/language_translation/src/model.py", "PositionalEncoding", "Translator")

    def call(n, source, target):
        mask = nn.Transformer.generate_square_subsequent_mask(target.size(1))
        return n(source.t(), target.t(), None, mask, None, None, None).transpose(0, 1)

    return Calls(Translator(2, 2, 32, 2, 400, 400, 64, 0.1), call), (text_of(batch, 12, 400), text_of(batch, 10,
                                                                                                      400)), "translation"


@network("pytorch/examples")
def mingpt_ddp(batch):
    module = file("pytorch+examples/distributed/minGPT-ddp/mingpt/model.py", "mingpt_ddp_model")
    config = module.GPTConfig(n_layer=2, n_head=2, n_embd=32, vocab_size=69, block_size=32)
    return Calls(module.GPT(config), lambda n, x: n(x)[0]), text_of(batch, 24), "language-model"


@network("karpathy/minGPT")
def mingpt(batch):
    sys.path.insert(0, str(SOURCES / "karpathy+minGPT"))
    from mingpt.model import GPT
    config = GPT.get_default_config()
    config.model_type, config.vocab_size, config.block_size = "gpt-nano", 69, 32
    return Calls(GPT(config), lambda n, x: n(x)[0]), text_of(batch, 24), "language-model"


@network("karpathy/nanoGPT")
def nanogpt(batch):
    module = file("karpathy+nanoGPT/model.py", "nanogpt_model")
    config = module.GPTConfig(block_size=32, vocab_size=69, n_layer=2, n_head=4, n_embd=32, dropout=0.1, bias=False)
    return Calls(module.GPT(config), lambda n, x: n(x, x)[0]), text_of(batch, 24), "language-model"


@network("milesial/Pytorch-UNet")
def unet(batch):
    package("unet", "milesial+Pytorch-UNet/unet")
    from unet.unet_model import UNet
    return Calls(UNet(3, 3), lambda n, x: torch.sigmoid(n(x))), torch.rand(batch, 3, 32, 32), "reconstruction"


tutorials = "yunjey+pytorch-tutorial/tutorials/"


@network("yunjey/pytorch-tutorial")
def tutorial_cnn(batch):
    ConvNet, = classes(tutorials + "02-intermediate/convolutional_neural_network/main.py", "ConvNet")
    return ConvNet(10), torch.randn(batch, 1, 28, 28)


@network("yunjey/pytorch-tutorial")
def tutorial_resnet(batch):
    conv, Block, ResNet = classes(tutorials + "02-intermediate/deep_residual_network/main.py", "conv3x3", "ResidualBlock",
                                  "ResNet")
    return ResNet(Block, [2, 2, 2]), torch.randn(batch, 3, 32, 32)


@network("yunjey/pytorch-tutorial")
def tutorial_rnn(batch):
    RNN, = classes(tutorials + "02-intermediate/recurrent_neural_network/main.py", "RNN")
    return Calls(RNN(28, 128, 2, 10), lambda n, x: n(x.squeeze(1))), torch.randn(batch, 1, 28, 28)


@network("yunjey/pytorch-tutorial")
def tutorial_birnn(batch):
    BiRNN, = classes(tutorials + "02-intermediate/bidirectional_recurrent_neural_network/main.py", "BiRNN")
    return Calls(BiRNN(28, 128, 2, 10), lambda n, x: n(x.squeeze(1))), torch.randn(batch, 1, 28, 28)


@network("yunjey/pytorch-tutorial")
def tutorial_lm(batch):
    RNNLM, = classes(tutorials + "02-intermediate/language_model/main.py", "RNNLM")

    def call(n, x):
        zeros = torch.zeros(1, x.size(0), 64)
        return n(x, (zeros, zeros))[0].view(x.size(0), x.size(1), -1)

    return Calls(RNNLM(69, 32, 64, 1), call), text_of(batch), "language-model"


@network("yunjey/pytorch-tutorial")
def tutorial_mlp(batch):
    NeuralNet, = classes(tutorials + "01-basics/feedforward_neural_network/main.py", "NeuralNet")
    return Calls(NeuralNet(784, 500, 10), lambda n, x: n(x.flatten(1))), torch.randn(batch, 1, 28, 28)


def hugging_face(name, config, model, task=None, length=32, **given):
    """A text network of transformers with a small random configuration."""
    def make(batch):
        import transformers
        made = getattr(transformers, model)(getattr(transformers, config)(**given)).train()
        words = 69 if task else 400
        values = (Calls(made, lambda n, x: n(input_ids=x).logits), text_of(batch, length, words))
        return (*values, task) if task else values

    network("transformers", "hf_" + name)(make)


tiny = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64)
words = dict(vocab_size=400, num_labels=2)
characters = dict(vocab_size=69, use_cache=False)
for kind in ("Bert", "Roberta", "Electra"):
    hugging_face(kind.lower(), kind + "Config", kind + "ForSequenceClassification", length=100, **tiny, **words)
hugging_face("albert", "AlbertConfig", "AlbertForSequenceClassification", length=100, embedding_size=16, **tiny, **words)
hugging_face("distilbert",
             "DistilBertConfig",
             "DistilBertForSequenceClassification",
             length=100,
             dim=32,
             n_layers=2,
             n_heads=2,
             hidden_dim=64,
             **words)
hugging_face("gpt2",
             "GPT2Config",
             "GPT2LMHeadModel",
             "language-model",
             n_embd=32,
             n_layer=2,
             n_head=2,
             n_positions=64,
             **characters)
hugging_face("opt",
             "OPTConfig",
             "OPTForCausalLM",
             "language-model",
             hidden_size=32,
             num_hidden_layers=2,
             num_attention_heads=2,
             ffn_dim=64,
             word_embed_proj_dim=32,
             **characters)
for kind in ("Llama", "Mistral", "Qwen2", "GPTNeoX"):
    more = {"num_key_value_heads": 2} if kind in ("Mistral", "Qwen2") else {}
    hugging_face(kind.lower(), kind + "Config", kind + "ForCausalLM", "language-model", **tiny, **characters, **more)


@network("transformers")
def hf_bert_mask(batch):
    from transformers import BertConfig, BertForSequenceClassification
    net = BertForSequenceClassification(BertConfig(**tiny, **words)).train()
    return Calls(net, lambda n, x, mask: n(input_ids=x, attention_mask=mask).logits), (text_of(batch, 100, 400),
                                                                                       torch.ones(batch, 100, dtype=torch.long))


@network("transformers")
def hf_t5(batch):
    from transformers import T5Config, T5ForConditionalGeneration
    net = T5ForConditionalGeneration(
        T5Config(vocab_size=400, d_model=32, d_kv=16, d_ff=64, num_layers=2, num_heads=2, use_cache=False)).train()
    return (Calls(net, lambda n, x, y: n(input_ids=x, decoder_input_ids=y).logits), (text_of(batch, 12,
                                                                                             400), text_of(batch, 10,
                                                                                                           400)), "translation")


def hugging_face_images(name, config, model, size=32, **given):
    def make():
        import transformers
        made = getattr(transformers, model)(getattr(transformers, config)(num_labels=10, **given)).train()
        return Calls(made, lambda n, x: n(pixel_values=x).logits)

    images("transformers", "hf_" + name, make, size)


patches = dict(image_size=32, patch_size=8, **tiny)
hugging_face_images("vit", "ViTConfig", "ViTForImageClassification", **patches)
hugging_face_images("deit", "DeiTConfig", "DeiTForImageClassification", **patches)
hugging_face_images("swin",
                    "SwinConfig",
                    "SwinForImageClassification",
                    image_size=32,
                    patch_size=4,
                    embed_dim=16,
                    depths=[2, 2],
                    num_heads=[2, 2],
                    window_size=4)
hugging_face_images("convnext",
                    "ConvNextConfig",
                    "ConvNextForImageClassification",
                    hidden_sizes=[16, 24, 32, 40],
                    depths=[1, 1, 1, 1])
hugging_face_images("resnet",
                    "ResNetConfig",
                    "ResNetForImageClassification",
                    embedding_size=16,
                    hidden_sizes=[16, 32],
                    depths=[1, 1],
                    layer_type="basic")
hugging_face_images("mobilenet_v2", "MobileNetV2Config", "MobileNetV2ForImageClassification", size=96, depth_multiplier=0.35)

for given in ("resnet10t", "convnext_atto", "mobilenetv3_small_050", "efficientnet_lite0", "ghostnet_050", "repvgg_a0",
              "regnetx_002", "lcnet_050"):

    def make(given=given):
        import timm
        return timm.create_model(given, num_classes=10)

    images("timm", "timm_" + given, make, 64)
for given in ("vit_tiny_patch16_224", "mixer_s32_224", "xcit_nano_12_p8_224"):

    def make(given=given):
        import timm
        return timm.create_model(given, num_classes=10, img_size=64)

    images("timm", "timm_" + given, make, 64)


@network("x-transformers")
def x_decoder(batch):
    from x_transformers import Decoder, TransformerWrapper
    return TransformerWrapper(num_tokens=69, max_seq_len=64,
                              attn_layers=Decoder(dim=32, depth=2, heads=2,
                                                  rotary_pos_emb=True)), text_of(batch), "language-model"
