/** The search for leaks of an agent on the orchestrator's API, which lists no claims and no pods. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { means, podRequest, poolChange, seed, textsOf } from "../../../test/support/ipam.ts";
import { type FakeApi, startFakeApi } from "../../../test/support/kube-api/fake-api.ts";
import { pollUntil } from "../../../test/support/poll.ts";
import { productMapping } from "../../datastore/kube/product-mapping.ts";
import { openKubeStore } from "../../datastore/kube/store.ts";
import { startReplica } from "../../datastore/replica.ts";
import { formatPrefix } from "../../ip/prefix.ts";
import { openAllocator } from "../../ipam/allocator.ts";
import { readBorrowings } from "../../ipam/leaks/borrowings.ts";
import { formatMark } from "../../ipam/link-mark.ts";
import { routedBlockKinds } from "../../routing/inputs.ts";
import { collectLeaks } from "../../upkeep/collect-leaks.ts";
import { FollowedClaims } from "./followed-claims.ts";

const [NODE, OTHER] = ["node-1", "node-2"];
const LATER = new Date("2100-01-01T00:00:00Z");
const HOURS = 3_600_000;

let api: FakeApi;
let requests: string[];
let elapsed: number;
let stop: AbortController;
let claims: FollowedClaims;
let following: Promise<void>;

function openStore() {
  const client = api.connect(async ({ method = "GET", path, query = {} }, send) => {
    const response = send();
    const selector = query["labelSelector"] ?? query["fieldSelector"] ?? "";
    const isList = method === "GET" && response.text.includes('"items":');
    requests.push(isList ? `list ${path.split("/").at(-1)} ${selector}`.trim() : `${method} ${path.split("/").at(-2)}`);
    return response;
  });
  return openKubeStore({
    api: client,
    mappings: productMapping(() => crypto.randomUUID()),
    close: () => client.close(),
  });
}

/** An agent starts. */
async function start(): Promise<void> {
  stop = new AbortController();
  const blocks = startReplica(openStore(), routedBlockKinds(), { signal: stop.signal, watches: "per kind" });
  claims = new FollowedClaims({ store: openStore(), node: NODE, elapsed: () => elapsed, random: () => 0.5 });
  following = claims.follow(blocks.updates(stop.signal));
  await claims.areKnown;
}

beforeEach(async () => {
  api = startFakeApi();
  requests = [];
  elapsed = 0;
  await seed(openStore(), poolChange("blue", "10.0.0.0/28", { blockSize: 29 }));
});
afterEach(async () => {
  stop.abort();
  await following;
});

const allocatorOf = () => openAllocator(openStore(), means());
const add = async (container: string, node = NODE) =>
  textsOf(
    await allocatorOf().assign({
      ...podRequest(container, { pod: container, node }),
      addressRequests: [{ kind: "automatic", family: 4 }],
    }),
  );
const remove = (container: string, node = NODE) => allocatorOf().releaseHandle({ handle: `net.${container}`, node });

/** A pass of the agent, with the containers that have links. Returns what was released, and the requests. */
async function pass(...containers: readonly string[]) {
  const store = openStore();
  requests = [];
  await claims.listIfDue();
  const marks = containers.map((containerId) => formatMark({ network: "net", containerId, ifname: "eth0" }));
  const links = {
    ...{ marks: new Set(marks), routed: new Map<string, string>(), bootedAt: new Date(0) },
    ...{ marksWithSources: new Set<string>(), attachments: new Map(), isHostNamespace: true },
  };
  const { released, blocks } = await collectLeaks(
    store,
    { node: NODE, isEmbedded: true, links, earlier: "keep", claims, isDryRun: false, openApi: async () => undefined },
    {
      ...{ now: () => LATER, random: Math.random, wait: async () => {}, warn: () => {} },
      machineIdentity: async () => "machine",
      containerAddresses: async () => undefined,
      forgetConnections: async () => {},
    },
  );
  return { released, blocks, requests };
}

const borrowedBlocks = async () => (await readBorrowings(openStore(), NODE)).map(({ cidr }) => formatPrefix(cidr));
/** Containers that fill the node's block; the other node has the only other one. */
const OWN = Array.from({ length: 8 }, (_, index) => `own-${index}`);
const fillOwnBlock = async () => {
  for (const container of OWN) await add(container);
};

describe("FollowedClaims", () => {
  test("leads a pass to the blocks of the node alone, without a list of claims or pods", async () => {
    await add("a");
    await add("b", OTHER);
    await start();
    expect((await pass("a")).requests.join()).not.toContain("list blockaffinities");
    expect((await pass("a")).requests.filter((each) => each.startsWith("list "))).toEqual([
      expect.stringMatching(/^list blockaffinities .*affinity/),
      expect.stringMatching(/^list blockaffinities .*borrowed/),
      "list ippools",
    ]);
    const { requests: again, released } = await pass("a");

    expect(again).toEqual(["GET nodes", "list ippools", "GET ipamblocks"]);
    expect(released).toEqual([]);
  });

  test("finds leaks in blocks that the node claimed, and borrowed from, after the start", async () => {
    await start();
    await pass();
    await pass();
    await add("b", OTHER);
    await fillOwnBlock();
    const [first] = await add(OWN[0] ?? "");
    const [borrowed] = await add("borrowed");
    await pollUntil(() => claims.blocks().length === 2, "the blocks to be followed");
    const { released, requests: made } = await pass(...OWN.slice(1));

    expect(new Set(released)).toEqual(new Set([first ?? "", borrowed ?? ""]));
    expect(made.filter((each) => each.startsWith("list "))).toEqual(["list ippools", "list ippools"]);
  });

  test("forgets a borrowing after the node's last address there, then the block", async () => {
    await add("b", OTHER);
    await start();
    await fillOwnBlock();
    await add("borrowed");
    await pollUntil(() => claims.blocks().length === 2, "the blocks to be followed");
    await pass(...OWN, "borrowed");
    await pass(...OWN, "borrowed");
    expect(await borrowedBlocks()).toHaveLength(1);
    await remove("borrowed");
    await pollUntil(async () => {
      await pass(...OWN);
      return (await borrowedBlocks()).length === 0;
    }, "the borrowing to be forgotten");
    await pass(...OWN);

    expect(claims.blocks()).toHaveLength(1);
    expect((await pass(...OWN)).requests).toEqual(["GET nodes", "list ippools", "GET ipamblocks"]);
  });

  test("lists the claims again once a day: a borrowing that was left before the start, or unseen, is found", async () => {
    await add("b", OTHER);
    await fillOwnBlock();
    await add("borrowed");
    await remove("borrowed");
    expect(await borrowedBlocks()).toHaveLength(1);
    await start();
    await pass(...OWN);
    await pass(...OWN);
    expect(await borrowedBlocks()).toEqual([]);

    elapsed += 23 * HOURS;
    expect((await pass(...OWN)).requests.join()).not.toContain("list blockaffinities");
    elapsed += 1 * HOURS;
    expect((await pass(...OWN)).requests.join()).toContain("list blockaffinities");
  });
});
