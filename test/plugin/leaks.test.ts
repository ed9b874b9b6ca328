/** Addresses of containers that ended without a DEL are found and released; addresses in use never are. */
import { afterEach, beforeEach, describe, expect } from "bun:test";
import { identity } from "../../src/identity.ts";
import { parseKey } from "../../src/model/keys.ts";
import { launchAgent } from "../agent/agent.ts";
import { bootNow, setBootTime } from "../support/boot-time.ts";
import { startEtcdOnHost } from "../support/etcd-on-host.ts";
import { hostProblem } from "../support/host.ts";
import { openPluginSite, type PluginSite, type Pod } from "../support/plugin-site.ts";
import { pollUntil } from "../support/poll.ts";
import { builtProgram } from "../support/run-plugin.ts";
import { STORES } from "./stores.ts";

/** Of the processes of the private host, which are the only ones in its /proc. */
const KILL_ETCD = 'cd /proc; for id in [0-9]*; do read name <$id/comm; [ "$name" = etcd ] && kill -9 $id; done; true';

for (const { kind, test } of STORES) {
  describe(`leaked addresses on ${kind}`, () => {
    let site: PluginSite;
    beforeEach(async () => {
      if (hostProblem() !== undefined) return;
      site = await openPluginSite(kind);
      becomeMachine("this-machine");
      const { name, cniVersion, ...plugin } = site.config();
      site.host.writeFile("/etc/cni/net.d/10-net.conflist", JSON.stringify({ name, cniVersion, plugins: [plugin] }));
    });
    afterEach(() => site?.[Symbol.asyncDispose]());

    const becomeMachine = (id: string) => site.host.writeFile(`${identity.stateDirectory}/machine-id`, `${id}\n`);
    const ctl = (...words: readonly string[]) => site.host.run([builtProgram(identity.adminTool), ...words]);
    // In a private host nothing proves that its process 1 is the machine's.
    const gc = (...words: readonly string[]) => ctl("ipam", "gc", "--any-namespace", ...words);
    const records = async () => (await site.left()).filter((line) => line.startsWith("/"));

    const addPods = async (count: number, more: Partial<Pod> = {}, config = site.config()) => {
      const pods: Pod[] = [];
      for (let index = 0; index < count; index += 1) {
        const pod = await site.makePod(more);
        await site.add(pod, { config });
        pods.push(pod);
      }
      return pods;
    };
    /** As a power loss does: namespace and links are gone, and nobody calls DEL. */
    const lose = async (pods: readonly Pod[]) => {
      const links = async () => (await site.host.must(["ip", "-o", "link"])).split("\n").length;
      const before = await links();
      for (const { netnsName } of pods) await site.host.must(["ip", "netns", "delete", netnsName]);
      await pollUntil(async () => (await links()) === before - pods.length, "the kernel to remove the links");
    };
    /** Makes every address look as if it was assigned an hour ago, after the boot of the host and the registration of the node. */
    const age = async () => {
      const before = (minutes: number) => new Date(Date.now() - minutes * 60_000);
      const past = (minutes: number) => before(minutes).toISOString();
      await setBootTime(site.host, before(180));
      for (const [key, value] of await site.store.list()) {
        const parts = parseKey(key);
        const aged =
          parts?.kind === "block"
            ? value.replaceAll(/("timestamp":\s*")[^"]*"/g, `$1${past(60)}"`)
            : value.replace(/(machine-since":\s*")[^"]*"/, `$1${past(120)}"`);
        if (aged !== value) await site.store.put([{ kind: "put", key, value: aged }]);
      }
    };

    test("are released by the agent at its start after a power loss", async () => {
      await ctl("node", "register");
      await lose(await addPods(3));
      await bootNow(site.host);
      const [living] = await addPods(1);
      expect(await records()).not.toEqual([]);

      const agent = launchAgent(site.host);
      await pollUntil(() => agent.log().includes("leaked addresses"), "the agent to release the addresses");
      expect(agent.log()).toMatch(/released 10\.50\.\S+ \(container "[0-9a-f]+", .*\): the host was booted after/);
      expect(agent.log()).toContain('Node "node-1": 6 leaked addresses');
      await agent.signal("TERM");
      await agent.ended;
      if (living === undefined) throw new Error("no pod");
      await site.quietly("CHECK", living, { config: await withResult(living) });
      await site.quietly("DEL", living);
      expect(await site.left()).toEqual([]);
    });
    const withResult = async (pod: Pod) => site.config({ prevResult: await site.add(pod) });

    test("are shown by --dry-run with a reason each, then released without a reboot; what has a link or a route stays", async () => {
      await ctl("node", "register");
      const [gone, ...living] = await addPods(3);
      await lose(gone === undefined ? [] : [gone]);
      const link = /^\d+: (\S+?)@/m.exec(await site.host.must(["ip", "-o", "link", "show", "type", "veth"]))?.[1] ?? "";
      await site.host.must(["ip", "link", "set", link, "alias", "renamed"]);
      expect((await gc()).stdout).toContain("0 leaked addresses");
      await age();

      const shown = await gc("--dry-run");
      expect(shown.stdout.match(/would release .*: the host has no link for it, 60 minutes after/g)).toHaveLength(2);
      const { code, stdout } = await gc();
      expect({ code, released: stdout.match(/^released /gm)?.length }).toEqual({ code: 0, released: 2 });
      expect((await records()).filter((key) => key.includes("/handle/"))).toHaveLength(living.length);
      for (const pod of living) await site.quietly("DEL", pod);
      expect(await records()).toEqual([]);
      expect((await ctl("ipam", "check", "--no-grace")).code).toBe(0);
    });

    test("of another node, or of another machine with the same node name, stay", async () => {
      await ctl("node", "register");
      const away = await addPods(1, {}, site.config({ nodename: "node-2" }));
      const here = await addPods(1);
      await lose([...away, ...here]);
      await age();
      const before = await records();
      becomeMachine("another-machine");
      expect(await gc()).toMatchObject({
        code: 1,
        stderr: expect.stringContaining("another machine has registered it"),
      });
      expect(await records()).toEqual(before);

      becomeMachine("this-machine");
      expect((await gc()).stdout).toContain("2 leaked addresses");
      expect((await records()).filter((key) => key.includes("/handle/"))).toHaveLength(1);
      expect((await records()).join()).toContain("node--2");
    });

    if (kind === "embedded") return;

    test("are released after etcd was killed during the DELs, and none of the others", async () => {
      await ctl("node", "register");
      const living = await addPods(2);
      const ending = await addPods(8);
      const removed = (pods: readonly Pod[]) => pods.map((pod) => site.call("DEL", pod, { limitMilliseconds: 60_000 }));
      // The kill meets some of the first seven anywhere; a fast machine has ended them all, so the last one comes after it.
      const [first, ...others] = removed(ending.slice(0, -1));
      await first;
      await site.host.must(["sh", "-c", KILL_ETCD]);
      const late = removed(ending.slice(-1));
      const codes = (await Promise.all([...others, ...late])).map(({ code }) => code);
      // As the runtime does that gives up: the containers and their namespaces go all the same.
      for (const { netnsName } of ending) await site.host.must(["ip", "netns", "delete", netnsName]);
      await startEtcdOnHost(site.host);
      const left = (await records()).filter((key) => key.includes("/handle/")).length;
      expect({ failed: codes.some((code) => code !== 0), leaked: left > living.length }).toEqual({
        failed: true,
        leaked: true,
      });
      await age();

      expect((await gc()).code).toBe(0);
      expect((await records()).filter((key) => key.includes("/handle/"))).toHaveLength(living.length);
      for (const pod of living) await site.quietly("DEL", pod);
      expect(await site.left()).toEqual([]);
      expect((await ctl("ipam", "check", "--no-grace")).code).toBe(0);
    }, 120_000);
  });
}
