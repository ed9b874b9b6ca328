import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { formatPrefix } from "../../src/ip/prefix.ts";
import { ownSockets } from "../../src/linux/netlink-socket.ts";
import { closeNetns, type Netns, runInNetns } from "../../src/linux/netns.ts";
import { type RouteEvent, watchRoutes } from "../../src/linux/rtnetlink/route-monitor.ts";
import { requireNetns } from "../support/namespace-sockets.ts";
import { canMakeNetns, NetnsArea, runIn, type TestNetns } from "../support/netns.ts";

const area = new NetnsArea("rm");

describe.skipIf(!canMakeNetns)(`watchRoutes()${canMakeNetns ? "" : " (skipped: needs root, ip and nsenter)"}`, () => {
  let place: TestNetns;
  let netns: Netns;
  beforeAll(() => {
    area.sweep();
    place = area.create();
    netns = requireNetns(place.path);
  });
  afterAll(() => {
    closeNetns(netns);
    area.sweep();
  });

  /** The socket is opened by the first request. */
  const watch = (signal: AbortSignal) => {
    const events = watchRoutes(ownSockets, signal)[Symbol.asyncIterator]();
    return { events, first: runInNetns(netns, () => ({ value: events.next() })).value };
  };
  const described = (event: RouteEvent) =>
    event.kind === "link" ? `link ${event.link.name}` : `${event.kind} ${formatPrefix(event.route.destination)}`;

  test("reports new and deleted routes of both families and changed links, and ends with the signal", async () => {
    const stop = new AbortController();
    const { events, first } = watch(stop.signal);
    const seen: string[] = [];
    const reading = (async () => {
      for (let next = await first; !next.done; next = await events.next()) {
        if (next.value !== "lost") seen.push(...next.value.map(described));
      }
    })();
    for (const words of ["add 198.51.100.7 dev lo", "del 198.51.100.7", "add 2001:db8::7 dev lo"]) {
      runIn(place, ["ip", "route", ...words.split(" ")]);
    }
    runIn(place, ["ip", "link", "set", "lo", "mtu", "9000"]);
    const wanted = ["put 198.51.100.7/32", "delete 198.51.100.7/32", "put 2001:db8::7/128", "link lo"];
    while (!wanted.every((each) => seen.includes(each))) await Bun.sleep(5);
    stop.abort();
    await reading;
    expect(seen.filter((each) => wanted.includes(each)).slice(0, 3)).toEqual(wanted.slice(0, 3));
  });

  test("says that events were lost if more has changed than fits into the buffer", async () => {
    const stop = new AbortController();
    const { events, first } = watch(stop.signal);
    const all = Array.from({ length: 15_000 }, (_, index) => `route add 10.7.${index >> 8}.${index & 255} dev lo`);
    // The process does not read meanwhile.
    runIn(place, ["ip", "-batch", "-"], all.join("\n"));
    let next = await first;
    while (!next.done && next.value !== "lost") next = await events.next();
    expect(next.value).toBe("lost");
    stop.abort();
    await events.return(undefined);
  });
});
