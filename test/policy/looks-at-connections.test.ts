/** Which connections of the kernel are looked at, and ended, while policy changes: with an imitated judge. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { ConnectionEnder } from "../../src/agent/policy/end-connections.ts";
import { type ListedConnection, listConnections } from "../../src/agent/policy/list-connections.ts";
import { type JudgedResources, OpenConnections } from "../../src/agent/policy/open-connections.ts";
import { identity } from "../../src/identity.ts";
import { closeNetlinkSocket, openNetlinkSocket, type SocketOpener } from "../../src/linux/netlink-socket.ts";
import { workloadEndpoint } from "../../src/model/workload-endpoint.ts";
import type { PolicyChanges } from "../../src/policy/inputs.ts";
import { insideNetns } from "../support/namespace-sockets.ts";
import { canMakeNetns, NetnsArea, runIn, type TestNetns } from "../support/netns.ts";
import { pollUntil } from "../support/poll.ts";

const area = new NetnsArea("looks");
const able = canMakeNetns && Bun.which("nft") !== null && Bun.which("bash") !== null;
const [DENIED, ALLOWED, OF_NEW] = [5401, 5402, 5403];
const NO_CHANGES: PolicyChanges = {
  ...{ endpoints: [], containerLabels: [], hostEndpoints: [], profiles: [], networkPolicies: [] },
  ...{ globalNetworkPolicies: [], networkSets: [], globalNetworkSets: [], configurations: [], serviceEndpoints: [] },
  tiers: [],
};
const CHANGE_OF_ALL: PolicyChanges = { ...NO_CHANGES, tiers: [{ kind: "delete", key: "any", previous: undefined }] };

describe.skipIf(!able)(
  `looks at open connections${able ? "" : " (skipped: needs root, ip, nsenter, nft, bash)"}`,
  () => {
    let place: TestNetns;
    beforeAll(() => {
      area.sweep();
      place = area.create();
      const rules = "table inet t { chain c { type filter hook output priority 0; ct state new accept; }; }";
      runIn(place, ["nft", "-f", "-"], rules);
    });
    afterAll(() => area.sweep());

    const kernel: SocketOpener = {
      openSocket: (...asked) => insideNetns(place.path, () => openNetlinkSocket(...asked)),
    };
    const follow = (judgeOf: (count: number) => void, isDenied = (port: number, _look: number) => port === DENIED) => {
      const stop = new AbortController();
      const judged: number[][] = [];
      let ended = 0;
      const enforced: JudgedResources = {
        policies: {
          ...{
            containerLabels: [],
            hostEndpoints: [],
            profiles: [],
            networkSets: [],
            globalNetworkSets: [],
            tiers: [],
          },
          ...{ networkPolicies: [], globalNetworkPolicies: [] },
        },
        isConcernedBy:
          ({ all, addresses }) =>
          (source, answering) =>
            all || addresses.has(source) || addresses.has(answering),
        async judgeOf() {
          const ports: number[] = [];
          const look = judged.push(ports);
          return {
            isDenied({ ports: { destination = 0 } = {} }) {
              ports.push(destination);
              judgeOf(ports.length);
              return isDenied(destination, look);
            },
          };
        },
      };
      const clock = {
        elapsed: () => performance.now(),
        wait: (milliseconds: number, signal: AbortSignal) =>
          milliseconds <= 1_000 || signal.aborted
            ? Bun.sleep(1)
            : new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true })),
      };
      const report = () => {};
      const open = new OpenConnections({
        ...{ kernel, clock, report, enforced: () => enforced },
        ender: new ConnectionEnder({ kernel, openProber: undefined, elapsed: clock.elapsed, report }),
        ended: (count) => {
          ended += count;
        },
      });
      const running = open.run(stop.signal);
      return {
        open,
        judged,
        ended: () => ended,
        async [Symbol.asyncDispose]() {
          stop.abort();
          await running;
        },
      };
    };
    const send = (address: string, port: number) =>
      runIn(place, ["bash", "-c", `echo x > /dev/udp/${address}/${port}`]);

    test("end what is denied, although policy changes during every look at all of them", async () => {
      for (const port of [DENIED, ALLOWED]) send("127.0.0.1", port);
      await using following = follow((count) => {
        if (count === 2) following.open.changed(true, [CHANGE_OF_ALL]);
      });
      following.open.changed(true, [CHANGE_OF_ALL]);
      await pollUntil(() => following.ended() > 0 || following.judged.length > 20, "some looks");
      expect(following.ended()).toBe(1);
    });

    test("do not end what a workload opened or answers that came during the look, and that rules allow", async () => {
      send("127.0.0.4", OF_NEW);
      const [name, namespace] = ["new", "shop"];
      const pod = workloadEndpoint.make({ name, namespace }, { node: "one", ipNetworks: ["127.0.0.4/32"] });
      const arrived = { kind: "put", key: "new", value: pod, previous: undefined } as const;
      await using following = follow(
        (count) => {
          if (count === 1 && following.judged.length === 1)
            following.open.changed(true, [{ ...NO_CHANGES, endpoints: [arrived] }]);
        },
        (port, look) => port === OF_NEW && look === 1,
      );
      following.open.changed(true, [CHANGE_OF_ALL]);
      await pollUntil(() => following.ended() > 0 || following.judged.length > 1, "a look, and a newer judgement");
      expect(following.ended()).toBe(0);
    });

    test("are made at the connections of a workload that is reached by another link now", async () => {
      for (const address of ["127.0.0.2", "127.0.0.3"]) send(address, DENIED);
      await using following = follow(() => {});
      following.open.moved(new Set(["127.0.0.2"]));
      following.open.changed(true, []);
      expect(following.judged).toEqual([]);
      await pollUntil(() => following.ended() === 2, "the first look at all");
      send("127.0.0.2", DENIED);
      send("127.0.0.3", DENIED);
      following.open.moved(new Set(["127.0.0.2"]));
      await pollUntil(() => following.ended() === 3, "the look at one");
      expect(following.judged.at(-1)).toEqual([DENIED]);
    });

    test("reset nothing of a connection that had ended before, whose ends may have another one by now", async () => {
      const options = { hostname: "127.0.0.1", port: DENIED, socket: { data: () => {} } };
      using _ = insideNetns(place.path, () => {
        const server = Bun.listen(options);
        return { [Symbol.dispose]: () => server.stop(true) };
      });
      const clients = await Promise.all([1, 2].map(() => insideNetns(place.path, () => Bun.connect(options))));
      const socket = kernel.openSocket("netfilter");
      const listed = await listConnections(socket, { isWanted: () => true, pause: async () => {} });
      const [gone, open] = listed.filter(({ connection: { protocol } }) => protocol === 6);
      if (gone === undefined || open === undefined) throw new Error("no connections");
      const ender = new ConnectionEnder({ kernel, openProber: undefined, elapsed: () => 0, report: () => {} });
      expect(ender.end(socket, [{ ...gone, id: gone.id + 1 }, open])).toEqual([open]);
      const resets = runIn(place, ["nft", "list", "table", "inet", `${identity.policyTable}_resets`]);
      const isReset = ({ connection: { ports } }: ListedConnection) => resets.includes(`127.0.0.1 . ${ports?.source} `);
      expect([gone, open].map(isReset)).toEqual([false, true]);
      ender.close();
      closeNetlinkSocket(socket);
      for (const each of clients) each.terminate();
    });
  },
);
