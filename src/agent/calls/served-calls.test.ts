import { describe, expect, test } from "bun:test";
import { ServedCallCounter, servedCallMetrics } from "./served-calls.ts";

describe("ServedCallCounter", () => {
  test("counts calls by plugin, command and result", () => {
    const counter = new ServedCallCounter();
    counter.add({ plugin: "vendor", command: "ADD", exitCode: 0, milliseconds: 2 });
    counter.add({ plugin: "vendor", command: "ADD", exitCode: 0, milliseconds: 3 });
    counter.add({ plugin: "vendor", command: "ADD", exitCode: 1, milliseconds: 1 });
    counter.add({ plugin: "portmap", command: "DEL", exitCode: 0, milliseconds: 1 });

    expect(counter.rows).toEqual([
      { plugin: "vendor", command: "ADD", result: "success", calls: 2, milliseconds: 5 },
      { plugin: "vendor", command: "ADD", result: "failure", calls: 1, milliseconds: 1 },
      { plugin: "portmap", command: "DEL", result: "success", calls: 1, milliseconds: 1 },
    ]);
  });
});

describe("servedCallMetrics()", () => {
  test("writes calls and their time", () => {
    const row = { plugin: "vendor", command: "ADD", result: "success", calls: 2, milliseconds: 5 } as const;
    const lines = servedCallMetrics([row]).split("\n");

    expect(lines).toContain('vendor_node_served_calls_total{plugin="vendor",command="ADD",result="success"} 2');
    expect(lines).toContain(
      'vendor_node_served_call_seconds_total{plugin="vendor",command="ADD",result="success"} 0.005',
    );
  });
});
