import { describe, expect, test } from "bun:test";
import { type Address, formatAddress } from "../../ip/address.ts";
import { parsePrefix } from "../../ip/prefix.ts";
import type { Link } from "../../linux/rtnetlink/link.ts";
import type { RouteEvent } from "../../linux/rtnetlink/route-monitor.ts";
import { WorkloadLinks } from "./workload-links.ts";

function linksOf(routes: Map<string, string>) {
  const asked: string[] = [];
  const changes: Record<string, string>[] = [];
  const links = new WorkloadLinks({
    kernel: {
      linkServing(address: Address) {
        const text = formatAddress(address);
        asked.push(text);
        const name = routes.get(text);
        return name === undefined ? undefined : ({ name } as Link);
      },
    },
    async *events() {},
    wait: async () => {},
    report: () => {},
    changed: (now) => void changes.push(Object.fromEntries(now)),
  });
  return { links, asked, changes };
}

function route(destination: string): RouteEvent {
  const prefix = parsePrefix(destination);
  if (prefix === undefined) throw new Error(destination);
  return { kind: "put", route: { destination: prefix } };
}

const POD = "10.0.0.5";
const OTHER = "10.0.0.6";

describe("WorkloadLinks", () => {
  test("asks the kernel only for addresses that are new", () => {
    const { links, asked } = linksOf(new Map([[POD, "veth1"]]));

    expect(links.follow(new Set([POD]))).toEqual(new Map([[POD, "veth1"]]));
    links.follow(new Set([POD, OTHER]));
    links.follow(new Set([POD, OTHER]));

    expect(asked).toEqual([POD, OTHER]);
  });

  test("asks again for the address of a route that has changed, and for no other", () => {
    const routes = new Map([[POD, "veth1"]]);
    const { links, asked } = linksOf(routes);
    links.follow(new Set([POD, OTHER]));
    asked.length = 0;

    routes.set(OTHER, "veth2");
    links.notice([route(`${OTHER}/32`), route("10.0.9.9/32")]);
    expect(links.follow(new Set([POD, OTHER, "10.0.0.7"])).get(OTHER)).toBe("veth2");

    expect(asked).toEqual([OTHER, "10.0.0.7"]);
  });

  test("asks again for all if a route to a network has changed", () => {
    const { links, asked } = linksOf(new Map());
    links.follow(new Set([POD, OTHER]));
    asked.length = 0;

    links.notice([route("10.0.0.0/24")]);
    links.follow(new Set([POD]));

    expect(asked).toEqual([POD]);
  });

  test("forgets addresses that are not followed any more", () => {
    const { links } = linksOf(new Map([[POD, "veth1"]]));
    links.follow(new Set([POD]));

    expect(links.follow(new Set())).toEqual(new Map());
  });

  test("does not listen before there is an address", async () => {
    const { links, changes } = linksOf(new Map());
    const stop = new AbortController();
    const running = links.run(stop.signal);
    stop.abort();
    await running;

    expect(changes).toEqual([]);
  });
});
