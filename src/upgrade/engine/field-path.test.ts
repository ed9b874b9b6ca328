import { expect, test } from "bun:test";
import { valueAt } from "./field-path.ts";

const object = {
  metadata: { annotations: { "example.org/a.b": "1", example: "2" }, finalizers: ["x", "y"] },
  spec: {
    replicas: 3,
    containers: [
      { name: "a", image: "one" },
      { name: 'b"]', image: "two", args: ["v", "w"] },
    ],
    ports: [
      { port: 80, protocol: "TCP", name: "tcp" },
      { port: 80, protocol: "UDP", name: "udp" },
    ],
  },
};

test.each([
  [".spec.replicas", 3],
  [".metadata.annotations.example.org/a.b", "1"],
  [".metadata.annotations.example", "2"],
  ['.metadata.finalizers[="y"]', "y"],
  ['.spec.containers[name="a"].image', "one"],
  ['.spec.containers[name="b\\"]"].args[1]', "w"],
  ['.spec.ports[port=80,protocol="UDP"].name', "udp"],
  [".spec.absent", undefined],
  ['.spec.containers[name="c"].image', undefined],
  [".spec.containers[name", undefined],
  [".spec.replicas[0]", undefined],
])("the value at %s", (path, value) => {
  expect(valueAt(object, path)).toEqual(value);
});
