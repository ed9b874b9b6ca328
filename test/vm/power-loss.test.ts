/**
 * A node whose power is cut while pods come and go, and one that is shut down: what the product and etcd have on the
 * disk is whole, nothing that was acknowledged is lost, and the node works on. No container survives a boot: the agent
 * releases what is recorded for those that nobody has restarted, and keeps what a runtime has restarted before.
 *
 *   disk of the guest (ext4) ── /var/lib (etcd and the product), /etc/cni, /var/log
 */
import { describe, expect } from "bun:test";
import { join } from "node:path";
import { hasEtcd } from "../support/etcd.ts";
import { program, testNeeding } from "../support/needs.ts";
import { pollUntil } from "../support/poll.ts";
import { proofSize } from "../support/proof-size.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";
import { type Guest, guestProblem, KERNELS, type Kernel, startGuest } from "./guest.ts";
import { continueGuestNode, type GuestNode, type GuestPod, startGuestNode } from "./guest-node.ts";

const TEST_MILLISECONDS = 1_800_000;
const PATIENCE_MILLISECONDS = 240_000;
/** Only what was assigned so long before a boot is certain to be older: its time is rounded. */
const BOOT_MARGIN_MILLISECONDS = 6_000;
/** Each takes minutes on a busy machine. */
const LOSSES = 1;
const DATA = "/var/lib/etcd-of-guest";

const MOUNT = `
  mkdir -p /disk
  mount -t ext4 /dev/vda /disk
  for each in var/lib var/log etc/cni; do mkdir -p "/disk/$each" "/$each"; mount --bind "/disk/$each" "/$each"; done`;

/** Nothing of it is in `make test`: the guest boots several times. */
for (const kernel of proofSize<readonly Kernel[]>({ everyDay: [], soak: KERNELS })) {
  const needs = [await guestProblem(kernel), hasEtcd ? undefined : "needs etcd", program("mkfs.ext4")];
  const test = testNeeding(...needs);

  describe(`the disk of a node with ${kernel}`, () => {
    test(
      "is whole after a shutdown and after power losses; the agent releases what the boot has ended, and nothing that was restarted",
      async () => {
        const folder = temporaryDirectory("disk");
        using undo = new DisposableStack();
        undo.defer(() => folder.remove());
        const disk = join(folder.path, "disk");
        expect(Bun.spawnSync(["mkfs.ext4", "-q", disk, "1G"]).exitCode).toBe(0);
        const boot = async () => {
          const isOldEnough = performance.now() + BOOT_MARGIN_MILLISECONDS;
          await pollUntil(() => performance.now() > isOldEnough, "the addresses to be older than the boot");
          const guest = await startGuest({ kernel, disk });
          await guest.must(["sh", "-ec", MOUNT]);
          return guest;
        };
        let kept: readonly GuestPod[];
        let asked: readonly string[];
        {
          await using guest = await boot();
          const node = await startGuestNode(guest, DATA);
          asked = ["before", "also-before"];
          kept = [];
          for (const name of asked) kept = [...kept, await node.addPod(name)];
          await guest.shutDown();
        }
        for (let loss = 1; loss <= LOSSES; loss++) {
          await using guest = await boot();
          const node = await continueGuestNode(guest, DATA);
          await expectWhole(node, { guest, kept, asked });
          ({ kept, asked } = await loseUnderCalls(node, guest, loss));
        }
        await using guest = await boot();
        const node = await continueGuestNode(guest, DATA);
        await expectWhole(node, { guest, kept, asked });
        expect((await node.addPod("after")).address).not.toBe("");
      },
      TEST_MILLISECONDS,
    );
  });
}

/** ADD and DEL are under way when the power fails. Returns what was acknowledged before, and every pod that was asked for. */
async function loseUnderCalls(node: GuestNode, guest: Guest, loss: number) {
  const removed = await node.addPod(`removed-${loss}`);
  const names = [1, 2, 3, 4].map((each) => `cut-${loss}-${each}`);
  const kept: GuestPod[] = [];
  const adds = names.map(async (name) => void kept.push(await node.addPod(name)));
  const ends = Promise.allSettled([...adds, node.removePod(removed)]);
  await Promise.any(adds);
  const acknowledged = [...kept];
  await guest.losePower();
  await ends;
  return { kept: acknowledged, asked: [removed.name, ...names] };
}

/** No file of the product is empty or broken, the datastore has what was acknowledged, and the agent and the runtime agree about what is gone. */
async function expectWhole(
  node: GuestNode,
  {
    guest,
    kept,
    asked,
  }: { readonly guest: Guest; readonly kept: readonly GuestPod[]; readonly asked: readonly string[] },
): Promise<void> {
  const own = (more: string) => `find /var/lib /etc/cni -type f -not -path '${DATA}/*' ${more}`;
  expect(await guest.must(["sh", "-ec", own("-size 0 -not -name '*lock*'")])).toBe("");
  for (const path of lines(await guest.must(["sh", "-ec", own("-name '*.json'")])))
    JSON.parse(await guest.must(["cat", path]));

  const recorded = await addressesInUse(node);
  for (const { address } of kept) expect(recorded).toContain(address);
  expect(new Set(recorded).size).toBe(recorded.length);
  await expectReleased(node, { kept, asked });
  // A runtime ends the sandboxes of the time before the boot, whether or not the agent has released their addresses.
  for (const name of asked) await node.removePod({ name, address: "" });
  expect(await addressesInUse(node)).toEqual([]);
  expect(await node.check("--no-grace")).toMatchObject({ code: 0 });
}

/** Runtimes that restart a container of before, as podman does, call ADD with its ID again, before the agent has released its address or after that. */
async function expectReleased(
  node: GuestNode,
  { kept, asked }: { readonly kept: readonly GuestPod[]; readonly asked: readonly string[] },
): Promise<void> {
  const [first] = kept;
  if (first === undefined) throw new Error("no pod was acknowledged");
  expect(await node.addPod(first.name)).toEqual(first);
  await node.startAgent();
  // An endpoint is deleted before its addresses are released.
  const isReleased = async () =>
    (await addressesInUse(node)).join() === first.address && (await node.check("--no-grace")).code === 0;
  await pollUntil(isReleased, "the agent to release what the boot has ended", PATIENCE_MILLISECONDS);

  const late = await node.addPod(asked.find((name) => name !== first.name) ?? "");
  expect(new Set(await addressesInUse(node))).toEqual(new Set([first.address, late.address]));
}

function lines(text: string): readonly string[] {
  return text.split("\n").filter((line) => line !== "");
}

async function addressesInUse(node: GuestNode): Promise<readonly string[]> {
  const { items } = JSON.parse(await node.admin("get workloadendpoint -A -o json")) as {
    readonly items: readonly { readonly spec: { readonly ipNetworks: readonly string[] } }[];
  };
  return items.flatMap(({ spec }) => spec.ipNetworks.map((each) => each.split("/")[0] ?? ""));
}
