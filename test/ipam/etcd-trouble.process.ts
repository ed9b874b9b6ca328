/**
 * One trial: processes take and give back addresses before, during and after
 * one trouble of a real cluster of three. Runs in the middle of a switched
 * network, whose hosts are the members, and prints what happened as JSON.
 */

import { startSiteAgent } from "../agent/site-agent.ts";
import type { MemberPlace } from "../support/etcd.ts";
import { startEtcd } from "../support/etcd.ts";
import { nodeChange, poolChange } from "../support/ipam.ts";
import { judge, openEtcdSite } from "../support/ipam-site.ts";
import { findDoubles } from "../support/ipam-storm.ts";
import { IpamCrew, type Watch } from "../support/ipam-workers.ts";
import { TROUBLES, type Trouble, type TroubleName } from "./etcd-trouble.ts";

export interface Trial {
  readonly trouble: TroubleName;
  readonly places: readonly MemberPlace[];
  readonly workers: number;
  readonly servedBy: "processes" | "an agent";
  readonly rounds: { readonly before: number; readonly during: number; readonly after: number };
}

export interface TrialReport {
  readonly before: Watch;
  readonly during: Watch;
  readonly after: Watch;
  readonly doubles: readonly string[];
  /** Containers that were there all the time: the address before and after. */
  readonly residents: readonly (readonly [before: string | undefined, after: string | undefined])[];
  readonly problems: readonly string[];
  /** Handles in the datastore at the end, without those of the residents. */
  readonly left: readonly string[];
}

const RESIDENTS = ["resident-1", "resident-2", "resident-3"];

if (import.meta.main) console.log(JSON.stringify(await runTrial(JSON.parse(process.argv[2] ?? ""))));

async function runTrial({ trouble: name, places, workers, rounds, servedBy }: Trial): Promise<TrialReport> {
  const trouble: Trouble = TROUBLES[name];
  const cluster = await startEtcd({ members: places.length, places, flags: trouble.flags ?? [] });
  const site = await openEtcdSite(cluster, nodeChange("node-1"), poolChange("four", "10.0.0.0/24", { blockSize: 28 }));
  const agent = servedBy === "an agent" ? await startSiteAgent(site) : undefined;
  try {
    const crew = new IpamCrew(site, workers);
    const residentsBefore = await addressesOf(crew);
    const before = await crew.work(rounds.before);
    const end = await trouble.begin(cluster, site);
    const during = await crew.work(rounds.during);
    await end();
    const after = joined(await crew.work(rounds.after), await crew.finish());
    const residentsAfter = await addressesOf(crew);
    const { world, problems } = await judge(site);
    return {
      before,
      during,
      after,
      doubles: findDoubles(crew.holdings),
      residents: residentsBefore.map((address, index) => [address, residentsAfter[index]]),
      problems: problems.map(({ message }) => message),
      left: world.handles.map(({ handleId }) => handleId).filter((handle) => !handle.includes("resident")),
    };
  } finally {
    await agent?.[Symbol.asyncDispose]();
    await site.stop();
  }
}

/** A second ADD of what is there answers the address it has. */
async function addressesOf(crew: IpamCrew): Promise<readonly (string | undefined)[]> {
  const addresses: (string | undefined)[] = [];
  for (const resident of RESIDENTS) addresses.push(await crew.address(resident));
  return addresses;
}

function joined(first: Watch, second: Watch): Watch {
  return {
    calls: first.calls + second.calls,
    failures: [...first.failures, ...second.failures],
    durations: [...first.durations, ...second.durations],
  };
}
