"""Synchronous parameter servers over torch.distributed.rpc. Parameter i is on server i modulo their number. A server adds the
gradients of all replicas in their order, steps its optimizer once, and returns its parameters."""
import contextlib
import threading
import warnings

import torch
from torch.distributed import rpc

import peer_model

warnings.filterwarnings("ignore", category=UserWarning, module="torch.distributed")  # of rpc.shutdown itself


class Server:
    def __init__(self, parameters, case):
        self.parameters, self.replicas = parameters, case["replicas"]
        self.optimizer = peer_model.optimizer(parameters, **case["optimizer"])
        self.lock, self.pushed, self.losses, self.updated = threading.Lock(), {}, {}, torch.futures.Future()

    def push(self, replica, gradients, loss):
        with self.lock:
            self.pushed[replica], self.losses[replica] = gradients, loss
            updated = self.updated
            if len(self.pushed) == self.replicas:
                for i, parameter in enumerate(self.parameters):
                    parameter.grad = sum(self.pushed[replica][i] for replica in range(self.replicas))
                self.optimizer.step()
                result = [parameter.detach().clone() for parameter in self.parameters], sum(self.losses.values())
                self.pushed, self.losses, self.updated = {}, {}, torch.futures.Future()
                updated.set_result(result)
        return updated


SERVER = None


@rpc.functions.async_execution
def push(replica, gradients, loss):
    return SERVER.push(replica, gradients, loss)


class Servers:
    """Of a replica."""

    def __init__(self, case, rank):
        self.names, self.rank = [f"server-{j}" for j in range(case["servers"])], rank

    def update(self, network, gradients, loss):
        """Replace the parameters by the updated ones. Returns the sum of the losses of all replicas."""
        count = len(self.names)
        calls = [rpc.rpc_async(name, push, args=(self.rank, list(gradients[j::count]), loss)) for j, name in enumerate(self.names)]
        with torch.no_grad():
            for j, call in enumerate(calls):
                values, whole_loss = call.wait()
                for parameter, value in zip(list(network.parameters())[j::count], values):
                    parameter.copy_(value)
        return whole_loss


@contextlib.contextmanager
def connected(folder, case, rank, network):
    """The servers for a replica, or None for a server, which serves until all replicas have ended."""
    global SERVER
    server = rank - case["replicas"]
    if server >= 0:
        SERVER = Server(list(network.parameters())[server::case["servers"]], case)
    options = rpc.TensorPipeRpcBackendOptions(init_method=f"file://{folder}/meet-{case['name']}")
    rpc.init_rpc(f"server-{server}" if server >= 0 else f"replica-{rank}", rank=rank,
                 world_size=case["replicas"] + case["servers"], rpc_backend_options=options)
    yield None if server >= 0 else Servers(case, rank)
    rpc.shutdown()
