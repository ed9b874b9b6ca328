/**
 * Removes links of the process's own network namespace for many callers at once.
 *
 * Removing a link takes the kernel 15 ms, but the link is gone after one: no route, no
 * address and no name is left. The rest is a grace period for readers in the kernel,
 * during which the call does not return. So a thread of the language runtime makes the
 * call and waits, and the caller continues once the link is gone.
 *
 * Removals requested while another one begins are done together: their links are put
 * into a temporary group, and fifty take no longer than one. If the process is killed
 * in between, the links are unchanged except for their group.
 */
import { isKernelError, type KernelError } from "../kernel-error.ts";
import type { NetlinkRequest } from "../netlink/request.ts";
import { attempt, attemptInBackground, closeNetlinkSocket, type SocketOpener } from "../netlink-socket.ts";
import { changeLink, deleteLink, deleteLinkGroup, hasLink } from "./link.ts";
import { withRouteSocket } from "./route-socket.ts";

export interface KnownLink {
  readonly name: string;
  readonly index: number;
}

export interface LinkRemoval {
  /** Returns why the kernel refused; a link that is already gone is not a refusal. */
  remove(link: KnownLink): Promise<KernelError | undefined>;
}

interface PendingRemoval {
  readonly link: KnownLink;
  readonly settle: (refusal: KernelError | undefined) => void;
  /** It is not known what the kernel did. */
  readonly fail: (failure: unknown) => void;
}

type Outcome = { readonly refusal: KernelError | undefined };

/** Avoids group numbers that are in use: those that administrators assign are small. */
const LOWEST_GROUP = 0x4000_0000;
/** Each one blocks a thread that other work may need. */
const MAXIMUM_WAITING = 4;
/** Usually the first check waits in the kernel until the link is gone. Later ones wait for a thread that has not started yet. */
const FIRST_CHECKS = 3;
const CHECK_MILLISECONDS = 1;

export interface RemovalMeans {
  readonly kernel: SocketOpener;
  readonly random: () => number;
  readonly wait: (milliseconds: number) => Promise<void>;
}

export function openLinkRemoval(means: RemovalMeans): LinkRemoval {
  return new GroupedRemoval(means);
}

class GroupedRemoval implements LinkRemoval {
  private pending: PendingRemoval[] = [];
  private isBusy = false;
  private readonly waiting = new Set<Promise<unknown>>();

  constructor(private readonly means: RemovalMeans) {}

  remove(link: KnownLink): Promise<KernelError | undefined> {
    return new Promise((settle, fail) => {
      this.pending.push({ link, settle, fail });
      if (!this.isBusy) void this.removeAll();
    });
  }

  private async removeAll(): Promise<void> {
    this.isBusy = true;
    while (this.pending.length > 0) {
      // Who asked for a removal gets its failure; here it only makes room.
      while (this.waiting.size >= MAXIMUM_WAITING) await Promise.race(this.waiting).catch(() => {});
      const batch = this.pending;
      this.pending = [];
      try {
        await this.removeBatch(batch);
      } catch (failure) {
        for (const { fail } of batch) fail(failure);
      }
    }
    this.isBusy = false;
  }

  private async removeBatch(batch: readonly PendingRemoval[]): Promise<void> {
    const group = batch.length > 1 ? joinGroup(batch, this.means) : undefined;
    if (group !== undefined && (await this.removeNow(deleteLinkGroup(group), batch)).refusal === undefined) {
      for (const { settle } of batch) settle(undefined);
      return;
    }
    // A single link, or the group was refused: each is removed by itself, and gets its own refusal.
    for (const removal of batch) removal.settle((await this.removeNow(deleteLink(removal.link), [removal])).refusal);
  }

  /** Returns when the links are gone, or the kernel has refused. */
  private async removeNow(removal: NetlinkRequest, batch: readonly PendingRemoval[]): Promise<Outcome> {
    const socket = this.means.kernel.openSocket("route");
    const returned = attemptInBackground(socket, [removal])
      .then(([refusal]): Outcome => ({ refusal: isGone(refusal) ? undefined : refusal }))
      .finally(() => {
        this.waiting.delete(returned);
        closeNetlinkSocket(socket);
      });
    this.waiting.add(returned);
    const check = { isOver: false };
    try {
      return await Promise.race([returned, whenGone(batch, check, this.means)]);
    } finally {
      check.isOver = true;
    }
  }
}

/** `undefined` if a link cannot join. */
function joinGroup(batch: readonly PendingRemoval[], { kernel, random }: RemovalMeans): number | undefined {
  const group = LOWEST_GROUP + Math.floor(random() * LOWEST_GROUP);
  const refusals = withRouteSocket(kernel, (socket) =>
    attempt(
      socket,
      batch.map(({ link }) => changeLink(link, { group })),
    ),
  );
  return refusals.every((refusal) => refusal === undefined || isGone(refusal)) ? group : undefined;
}

/** All links of a batch disappear at the same time, under one lock of the kernel. */
async function whenGone(
  batch: readonly PendingRemoval[],
  check: { readonly isOver: boolean },
  { kernel, wait }: RemovalMeans,
): Promise<Outcome> {
  const socket = kernel.openSocket("route");
  try {
    for (let checks = 0; ; checks += 1) {
      await wait(checks < FIRST_CHECKS ? 0 : CHECK_MILLISECONDS);
      if (check.isOver || !batch.some(({ link }) => hasLink(socket, link.index))) return { refusal: undefined };
    }
  } finally {
    closeNetlinkSocket(socket);
  }
}

function isGone(refusal: KernelError | undefined): boolean {
  return refusal !== undefined && isKernelError(refusal, "ENODEV");
}
