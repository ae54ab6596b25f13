"""store_test.py STORE: trainyard-store answers the clients of PyTorch's TCPStore as PyTorch's own server does."""
import socket
import subprocess
import sys
import threading
import unittest
from datetime import timedelta

from torch.distributed import TCPStore

PROGRAM = sys.argv.pop(1)
SHORT = timedelta(milliseconds=300)


def answer(call):
    """What a call returns, or the kind of its error."""
    try:
        return call()
    except Exception as error:
        return type(error).__name__


class Store(unittest.TestCase):
    def setUp(self):
        self.process = subprocess.Popen([PROGRAM], stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline().split()[1])
        self.pytorchs = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)

    def tearDown(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def client(self, port=None):
        return TCPStore("127.0.0.1", port or self.port, is_master=False, wait_for_workers=False)

    def same(self, *calls):
        """Each call has the same answer from both servers."""
        for call in calls:
            ours, theirs = self.client(), self.client(self.pytorchs.port)
            self.assertEqual(answer(lambda: call(ours)), answer(lambda: call(theirs)))

    def test_each_request_has_the_answer_of_pytorchs_server(self):
        long = "v" * (3 << 20)
        self.same(
            lambda store: store.set("a", "1"), lambda store: store.get("a"), lambda store: store.add("a", 5),
            lambda store: store.add("new", -3), lambda store: store.get("new"), lambda store: store.check(["a", "new"]),
            lambda store: store.check(["a", "absent"]), lambda store: store.num_keys(), lambda store: store.delete_key("new"),
            lambda store: store.delete_key("new"), lambda store: store.num_keys(), lambda store: store.append("a", "xyz"),
            lambda store: store.append("b", "first"), lambda store: store.get("a"), lambda store: store.get("b"),
            lambda store: store.compare_set("b", "first", "second"), lambda store: store.compare_set("b", "first", "third"),
            lambda store: store.compare_set("c", "", "made"), lambda store: store.compare_set("d", "expected", "made"),
            lambda store: store.get("c"), lambda store: store.check(["d"]),
            lambda store: store.multi_set(["e", "f"], ["5", ""]), lambda store: store.multi_get(["e", "f", "b"]),
            lambda store: store.set("empty", ""), lambda store: store.get("empty"), lambda store: store.set("bytes", b"\0\xff"),
            lambda store: store.get("bytes"), lambda store: store.set("long", long), lambda store: store.get("long") == long.encode(),
            lambda store: store.wait(["a", "b"], SHORT), lambda store: store.wait(["absent"], SHORT),
            lambda store: store.queue_push("queue", "1"), lambda store: store.queue_push("queue", "2"),
            lambda store: store.queue_len("queue"), lambda store: store.queue_pop("queue"), lambda store: store.check(["queue"]),
            lambda store: store.queue_pop("queue"), lambda store: store.queue_len("queue"), lambda store: store.check(["queue"]),
            lambda store: store.queue_pop("queue", block=False), lambda store: sorted(store.list_keys()))

    def test_a_client_waits_until_the_last_of_its_keys_is_set_and_can_wait_again_after_a_timeout(self):
        waiting, other = self.client(), self.client()
        with self.assertRaises(Exception):
            waiting.wait(["one", "two"], SHORT)
        other.set("one", "1")
        threading.Timer(0.2, lambda: other.add("two", 2)).start()
        waiting.wait(["one", "two"], timedelta(seconds=20))
        self.assertEqual(waiting.get("two"), b"2")
        threading.Timer(0.2, lambda: other.queue_push("work", "job")).start()
        self.assertEqual(waiting.queue_pop("work"), b"job")

    def test_clients_that_know_barriers_meet(self):
        clients = [self.client() for _ in range(3)]
        if not hasattr(clients[0], "barrier"):
            self.skipTest("this PyTorch has no barrier of the store")
        with self.assertRaises(Exception):
            clients[0].barrier("early", 3, SHORT)
        passed = []
        threads = [threading.Thread(target=lambda c=c: (c.barrier("all", 3, timedelta(seconds=20)), passed.append(1))) for c in clients]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        self.assertEqual(len(passed), 3)

    def test_what_is_no_request_is_closed_and_others_go_on(self):
        for wrong in (b"GET / HTTP/1.0\r\n\r\n", b"\0\0\0\0\0", b"\0\xce\xf7\x85\x3c\xff", b"\0\xce\xf7\x85\x3c\3" + b"\xff" * 8):
            with socket.create_connection(("127.0.0.1", self.port)) as connection:
                connection.settimeout(20)
                connection.sendall(wrong)
                self.assertEqual(connection.recv(1), b"", wrong)
        store = self.client()
        store.set("text", "no number")
        with self.assertRaises(Exception):
            self.client().add("text", 1)
        self.assertEqual(store.get("text"), b"no number")


if __name__ == "__main__":
    unittest.main()
