import { describe, expect, test } from "bun:test";
import { nodeChange, poolChange, seed } from "../../../test/support/ipam.ts";
import { pollUntil } from "../../../test/support/poll.ts";
import { startedReplicas } from "../../../test/support/started-replicas.ts";
import { openMemory } from "../../datastore/memory/memory.ts";
import { startReplica } from "../../datastore/replica.ts";
import { NODE } from "../../model/kinds.ts";
import { node } from "../../model/node.ts";
import { ROUTING_STATE_ANNOTATION } from "../../model/routing-state.ts";
import { KINDS_OF_PARTS, type NetworkValues, networkKinds } from "./followed-network.ts";

const replicas = startedReplicas();

function nodeWith(name: string, annotations: Readonly<Record<string, string>>, asNumber: number) {
  const made = node.make({ name, annotations }, { bgp: { asNumber } });
  return { kind: "put", key: NODE.key({ name }), value: node.write(made) } as const;
}

/** The names of the changed Nodes that each part of an agent is told, and the state that it sees in them. */
async function agentOf(name: string) {
  const store = openMemory();
  await seed(store, nodeChange("one"), nodeChange("two"), poolChange("blue", "10.0.0.0/24"));
  const replica = replicas.note(
    startReplica<NetworkValues>(store, networkKinds(name), { signal: replicas.stop.signal }),
  );
  const told = new Map(Object.keys(KINDS_OF_PARTS).map((part) => [part, [] as string[]]));
  for (const part of ["policy", "nodeRecord", "clusterSources", "routes", "bgp"] as const) {
    void (async () => {
      for await (const { changes } of replica.part<keyof NetworkValues>(KINDS_OF_PARTS[part]).updates()) {
        told.get(part)?.push(changes.nodes.map(({ key }) => key.split("/").at(-1)).join());
      }
    })();
  }
  const all = () => [...told.values()].filter((each) => each.length > 0);
  await pollUntil(() => all().length === 5, "the first update of all parts");
  const stateOf = (of: string) =>
    replica.snapshot?.nodes.get(NODE.key({ name: of }))?.metadata.annotations?.[ROUTING_STATE_ANNOTATION];
  return { store, all, stateOf };
}

describe("networkKinds()", () => {
  test("tells no part of an agent that another node wrote what it says of its routing", async () => {
    const { store, all, stateOf } = await agentOf("one");
    await seed(store, nodeWith("two", {}, 64512));
    await pollUntil(() => all().every((each) => each.length === 2), "the change");
    for (const state of ["first", "second"]) {
      await seed(store, nodeWith("two", { [ROUTING_STATE_ANNOTATION]: state }, 64512));
    }
    // What comes after it has arrived, and nothing before.
    await seed(store, nodeWith("two", { [ROUTING_STATE_ANNOTATION]: "third" }, 64513));
    await pollUntil(() => all().every((each) => each.length === 3), "the other change");

    expect(all().map((each) => each.slice(1))).toEqual(Array(5).fill(["two", "two"]));
    expect(stateOf("two")).toBeUndefined();
  });

  test("tells an agent what its own Node says", async () => {
    const { store, all, stateOf } = await agentOf("one");
    await seed(store, nodeWith("one", { [ROUTING_STATE_ANNOTATION]: "own" }, 64512));
    await pollUntil(() => all().every((each) => each.length === 2), "the change");

    expect(stateOf("one")).toBe("own");
  });
});
