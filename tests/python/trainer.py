"""trainer.py CASE SEED: Hugging Face's Trainer with a small BERT. `trainyard run` starts it with one rank and with two."""
import os
import sys

os.environ["HF_HUB_OFFLINE"] = "1"

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

from trainyard.huggingface import Callback

seed, world = int(sys.argv[2]), int(os.environ["WORLD_SIZE"])
torch.set_num_threads(1)
ids = torch.randint(0, 100, (96, 16), generator=torch.Generator().manual_seed(0))
labels = (ids.float().mean(1) > 49.5).long()


class Sentences(torch.utils.data.Dataset):
    def __len__(self):
        return len(ids)

    def __getitem__(self, i):
        return {"input_ids": ids[i], "labels": labels[i]}


torch.manual_seed(seed)
size = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, max_position_embeddings=16,
            hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
model = BertForSequenceClassification(BertConfig(vocab_size=100, **size))
arguments = TrainingArguments(
    "out", num_train_epochs=2, per_device_train_batch_size=8 // world, per_device_eval_batch_size=8, gradient_accumulation_steps=2,
    learning_rate=1e-3, warmup_steps=3, lr_scheduler_type="cosine", eval_strategy="epoch", save_strategy="no", report_to=[],
    use_cpu=True, seed=seed, disable_tqdm=True, ddp_backend="gloo" if world > 1 else None)
Trainer(model, arguments, train_dataset=Sentences(), eval_dataset=Sentences(), callbacks=[Callback()]).train()
