import { describe, expect, test } from "bun:test";
import { DATASTORES } from "../datastore/servers.ts";
import { startSite } from "./node-site.ts";

const CONTAINER = "container-1";

describe.each(
  DATASTORES.flatMap((datastore) => (["itself", "server"] as const).map((calls) => ({ datastore, calls }))),
)("a node on datastore $datastore, calls are done by $calls", ({ datastore, calls }) => {
  const network = { policy: "required", policySetupSeconds: 10 } as const;

  test("ADD connects a pod, CHECK confirms it, DEL leaves nothing", async () => {
    const { node, createPod, until, pass, left } = await startSite({ datastore, calls, network });
    const pod = createPod("web");
    expect(await until(node.runtime.add(pod, "too-early"))).toMatchObject({ ok: false });
    await until(node.runtime.del("too-early"));
    node.startAgent();
    await pass(1_000);
    const added = await until(node.runtime.add(pod, CONTAINER));
    const again = await until(node.runtime.add(pod, CONTAINER));

    expect(added).toMatchObject({ ok: true, addresses: [expect.stringMatching(/^10\.1\.0\./)] });
    expect(again).toEqual(added);
    expect([...node.statusFiles.values()].join()).toContain(CONTAINER);
    expect(
      [...(node.host.namespaceAt(`/run/netns/${CONTAINER}`)?.links.values() ?? [])].map(({ name }) => name),
    ).toEqual(["lo", "eth0"]);
    expect(left().length).toBeGreaterThan(3);
    expect(await until(node.runtime.check(CONTAINER))).toBeUndefined();

    expect(await until(node.runtime.del(CONTAINER))).toBe(true);
    await pass(30_000);
    expect(left()).toEqual([]);
    expect(await until(node.runtime.repeatDel(pod, CONTAINER))).toBe(true);
    expect(node.runtime.failures).toEqual([expect.stringContaining("has not set its rules yet")]);
  });

  test("the agent and a reboot: rules and routes come back, and the runtime ends what was", async () => {
    const { node, createPod, until, pass, left } = await startSite({ datastore, calls, network });
    node.startAgent();
    await pass(1_000);
    const pod = createPod("web");
    await until(node.runtime.add(pod, CONTAINER));
    node.switchOff();
    await pass(10_000);
    node.switchOn();
    node.startAgent();
    await pass(10_000);
    expect(left().filter((each) => each.startsWith("link"))).toEqual([]);
    expect(await until(node.runtime.add(pod, "container-2"))).toMatchObject({ ok: true });
    expect(await until(node.runtime.del(CONTAINER))).toBe(true);
    expect(await until(node.runtime.check("container-2"))).toBeUndefined();
    expect(await until(node.runtime.del("container-2"))).toBe(true);
    await pass(30_000);
    expect(left()).toEqual([]);
  });
});

describe("a killed call", () => {
  /** More than any call has. */
  const MOST_EFFECTS = 80;

  test.each(DATASTORES)("of ADD loses nothing, on datastore %s", async (datastore) => {
    let survived = 0;
    for (let effects = 0; effects < MOST_EFFECTS && survived === 0; effects++) {
      const next = effects % 2 === 0 ? "DEL" : "ADD";
      const { node, createPod, until, pass, left } = await startSite({ seed: effects, datastore });
      const pod = createPod("web");
      node.killNextCall(effects);
      const { ok } = await until(node.runtime.add(pod, CONTAINER));
      await pass(1_000);
      if (ok) survived = effects;
      if (next === "ADD") {
        expect(await until(node.runtime.add(pod, CONTAINER))).toMatchObject({ ok: true });
        expect(await until(node.runtime.check(CONTAINER))).toBeUndefined();
      }
      expect(await until(node.runtime.del(CONTAINER))).toBe(true);
      expect({ effects, next, left: left() }).toEqual({ effects, next, left: [] });
    }
    expect(survived).toBeGreaterThan(10);
  });

  test.each(DATASTORES)("of DEL is finished by the next, on datastore %s", async (datastore) => {
    let survived = 0;
    for (let effects = 0; effects < MOST_EFFECTS && survived === 0; effects++) {
      const { node, createPod, until, pass, left } = await startSite({ seed: effects, datastore });
      const pod = createPod("web");
      await until(node.runtime.add(pod, CONTAINER));
      node.killNextCall(effects);
      if (await until(node.runtime.del(CONTAINER))) survived = effects;
      await pass(1_000);
      expect(await until(node.runtime.del(CONTAINER))).toBe(true);
      expect({ effects, left: left() }).toEqual({ effects, left: [] });
    }
    expect(survived).toBeGreaterThan(4);
  });
});
