"""Proxies that lie, each in one way. The checker must detect each lie."""

import http.client
import itertools
import json
import random

from proxy import Proxy, reset

LIES = {
    "stale": "a look-up is answered as an earlier one of the same records was",
    "dropped": "a write is acknowledged, and never sent",
    "torn": "a batch of two is sent as two requests",
    "missed": "changes of a zone lack one",
    "doubled": "a write is done twice",
    "let-in": "a change of a participant's permission is acknowledged, and never sent",
}


class LyingProxy(Proxy):
    """Passes requests on unchanged, and lies in about one of `every` cases."""

    def __init__(self, target, seed, lie, every=25):
        self.lie, self.every, self.told = lie, every, 0
        self.chance, self.numbers = random.Random(seed), itertools.count(1)
        # Earlier answers to look-ups, and a saved record of an answer.
        self.earlier, self.saved = {}, None
        super().__init__(target, seed)

    def carry(self, pair):
        client, server = pair
        connection = http.client.HTTPConnection(*self.target, timeout=30)
        connection.sock = server
        try:
            with client.makefile("rb") as file:
                while True:
                    line = file.readline()
                    if not line:
                        break
                    method, path, _ = line.decode().split(" ", 2)
                    headers = http.client.parse_headers(file)
                    body = file.read(int(headers.get("Content-Length", 0)))
                    wanted = {name: headers[name] for name in ("Authorization", "Content-Type", "X-Tidemark-Extensions") if name in headers}
                    status, data = self.answer(lambda body: self.ask(connection, method, path, body, wanted), path, body)
                    head = f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
                    client.sendall(head.encode() + data)
        except (OSError, ValueError, http.client.HTTPException):
            pass
        reset(client)
        connection.close()

    @staticmethod
    def ask(connection, method, path, body, headers):
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read()

    def answer(self, ask, path, body):
        """Returns the status and the body for a request, with or without a lie."""
        operation = path.rsplit("/", 1)[-1]
        lies = self.chance.randrange(self.every) == 0
        if operation == "lookup" and self.lie == "stale":
            return self.look_up(ask, path, body, lies)
        if operation == "modify" and "/records/" in path and self.lie in ("dropped", "torn", "doubled"):
            return self.modify(ask, body, lies)
        if operation == "zone" and self.lie == "missed" and lies:
            status, data = ask(body)
            answer = json.loads(data)
            if status == 200 and answer["zones"][0].get("records"):
                answer["zones"][0]["records"].pop()
                self.told += 1
            return status, json.dumps(answer).encode()
        if operation == "change" and self.lie == "let-in" and b"setPermission" in body and self.chance.randrange(3) == 0:
            self.told += 1
            return 200, b"{}"
        return ask(body)

    def look_up(self, ask, path, body, lies):
        key = path, body
        if lies and key in self.earlier:
            self.told += 1
            return 200, self.earlier[key]
        status, data = ask(body)
        if status == 200 and (key not in self.earlier or self.chance.randrange(3) == 0):
            self.earlier[key] = data
        return status, data

    def modify(self, ask, body, lies):
        request = json.loads(body)
        operations = request["operations"]
        if lies and self.lie == "torn" and len(operations) == 2:
            self.told += 1
            request.pop("tidemark", None)
            answers = [ask(json.dumps(request | {"operations": [operation]})) for operation in operations]
            refused = [answer for answer in answers if answer[0] != 200]
            if refused:
                return refused[0]
            return 200, json.dumps({"records": [json.loads(data)["records"][0] for _, data in answers]}).encode()
        is_plain = len(operations) == 1 and operations[0]["operationType"] == "forceUpdate"
        if lies and is_plain and self.lie == "dropped" and self.saved:
            self.told += 1
            record = operations[0]["record"]
            return 200, json.dumps({"records": [self.saved | record | {"recordChangeTag": f"dropped-{next(self.numbers)}"}]}).encode()
        if lies and is_plain and self.lie == "doubled":
            self.told += 1
            request.pop("tidemark", None)
            ask(json.dumps(request))
            return ask(json.dumps(request))
        status, data = ask(body)
        if status == 200 and is_plain and "recordChangeTag" in json.loads(data)["records"][0]:
            self.saved = json.loads(data)["records"][0]
        return status, data
