/**
 * Removes links of the process's own network namespace for many callers at once.
 *
 * Removing a link takes the kernel 15 ms, but the link is gone after one: no
 * route, no address, no name is left. The rest is a wait for whoever may still
 * look at it, during which the call does not return. So a thread of the language
 * runtime makes the call and waits, and the caller goes on once the link is gone.
 *
 * Whoever comes while a removal begins is part of the next, by a group that the
 * links are put into just for this: fifty take no longer than one. A process that
 * dies in between leaves them as they were, but for their group.
 */
import { isKernelError, type KernelError } from "../kernel-error.ts";
import type { NetlinkRequest } from "../netlink/request.ts";
import { attempt, attemptAside, closeNetlinkSocket, openNetlinkSocket } from "../netlink-socket.ts";
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

interface Wish {
  readonly link: KnownLink;
  readonly settle: (refusal: KernelError | undefined) => void;
}

type Outcome = { readonly refusal: KernelError | undefined };

/** So that a number is nobody else's: groups that people give to links are small. */
const LOWEST_GROUP = 0x4000_0000;
/** Each waits on a thread that others may need, too. */
const MOST_WAITING = 4;
/** Mostly the first look waits in the kernel until the link is gone. Later ones give the thread time that has not begun yet. */
const FIRST_LOOKS = 3;
const LOOK_MILLISECONDS = 1;

export function openLinkRemoval(): LinkRemoval {
  return new GroupedRemoval();
}

class GroupedRemoval implements LinkRemoval {
  private wishes: Wish[] = [];
  private isBusy = false;
  private readonly waiting = new Set<Promise<unknown>>();

  remove(link: KnownLink): Promise<KernelError | undefined> {
    return new Promise((settle) => {
      this.wishes.push({ link, settle });
      if (!this.isBusy) void this.removeAll();
    });
  }

  private async removeAll(): Promise<void> {
    this.isBusy = true;
    while (this.wishes.length > 0) {
      while (this.waiting.size >= MOST_WAITING) await Promise.race(this.waiting);
      const batch = this.wishes;
      this.wishes = [];
      await this.removeBatch(batch);
    }
    this.isBusy = false;
  }

  private async removeBatch(batch: readonly Wish[]): Promise<void> {
    const group = batch.length > 1 ? joinGroup(batch) : undefined;
    if (group !== undefined && (await this.removeNow(deleteLinkGroup(group), batch)).refusal === undefined) {
      for (const { settle } of batch) settle(undefined);
      return;
    }
    // Alone, or refused together: then each is removed by itself, and told its own reason.
    for (const wish of batch) wish.settle((await this.removeNow(deleteLink(wish.link), [wish])).refusal);
  }

  /** Comes back when the links are gone, or the kernel has refused. */
  private async removeNow(removal: NetlinkRequest, batch: readonly Wish[]): Promise<Outcome> {
    const socket = openNetlinkSocket("route");
    const returned = attemptAside(socket, [removal])
      .then(([refusal]): Outcome => ({ refusal: isGone(refusal) ? undefined : refusal }))
      .finally(() => {
        this.waiting.delete(returned);
        closeNetlinkSocket(socket);
      });
    this.waiting.add(returned);
    const look = { isOver: false };
    try {
      return await Promise.race([returned, whenGone(batch, look)]);
    } finally {
      look.isOver = true;
    }
  }
}

/** `undefined` where a link cannot join. */
function joinGroup(batch: readonly Wish[]): number | undefined {
  const group = LOWEST_GROUP + Math.floor(Math.random() * LOWEST_GROUP);
  const refusals = withRouteSocket((socket) =>
    attempt(
      socket,
      batch.map(({ link }) => changeLink(link, { group })),
    ),
  );
  return refusals.every((refusal) => refusal === undefined || isGone(refusal)) ? group : undefined;
}

/** All links of a batch go at the same time, under one lock of the kernel. */
async function whenGone(batch: readonly Wish[], look: { readonly isOver: boolean }): Promise<Outcome> {
  const socket = openNetlinkSocket("route");
  try {
    for (let looks = 0; ; looks += 1) {
      await Bun.sleep(looks < FIRST_LOOKS ? 0 : LOOK_MILLISECONDS);
      if (look.isOver || !batch.some(({ link }) => hasLink(socket, link.index))) return { refusal: undefined };
    }
  } finally {
    closeNetlinkSocket(socket);
  }
}

function isGone(refusal: KernelError | undefined): boolean {
  return refusal !== undefined && isKernelError(refusal, "ENODEV");
}
