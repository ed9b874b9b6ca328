/** What the built plugins, and the agent, log about their calls. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { programNames } from "../../src/bin/programs.ts";
import { identity } from "../../src/identity.ts";
import { type Agent, BIN, launchAgent, startAgent } from "../agent/agent.ts";
import { bootNow } from "../support/boot-time.ts";
import { hostProblem } from "../support/host.ts";
import { poolChange } from "../support/ipam.ts";
import { program, testNeeding } from "../support/needs.ts";
import {
  type CallOptions,
  type Command,
  type Json,
  openPluginSite,
  type PluginSite,
  type Pod,
} from "../support/plugin-site.ts";
import { pollUntil } from "../support/poll.ts";
import { builtProgram } from "../support/run-plugin.ts";
import { type LogLine, linesOf, unwrittenLines } from "./lines.ts";

const test = testNeeding(hostProblem(), program("nft"));
const FILE = "/var/log/calls.log";
const NAMES = programNames(identity);
const RANGES = { type: "host-local", ranges: [[{ subnet: "10.77.0.0/24" }]] };
const MAPPED = { runtimeConfig: { portMappings: [{ hostPort: 8080, containerPort: 80, protocol: "tcp" }] } };
const SHAPED = { runtimeConfig: { bandwidth: { ingressRate: 8000000, ingressBurst: 800000 } } };
const POOLS_OF_HOST_LOCAL = { ipam: { ...RANGES, ipv4_pools: ["blue"] } };
const WHO = { interface: "eth0", network: "net" };

let site: PluginSite;
let agent: Agent;
/** Everything that the tests have seen, for the comparison with the documentation. */
const seen: LogLine[] = [];
let agentLog = "";

beforeAll(async () => {
  if (hostProblem() === undefined) site = await openPluginSite("embedded");
});
afterAll(async () => {
  await site?.[Symbol.asyncDispose]();
});

/** Runs a call; returns the lines that it added to the file. */
async function logged(command: Command, pod: Pod, options: CallOptions = {}): Promise<readonly LogLine[]> {
  const file = site.host.view(FILE);
  rmSync(file, { force: true });
  const { stderr } = await site.call(command, pod, options);
  const lines = existsSync(file) ? linesOf(readFileSync(file, "utf8")) : [];
  expect(linesOf(stderr)).toEqual([...lines]);
  // Matchers replace the values that they match.
  seen.push(...structuredClone(lines));
  return lines;
}

const own = (more: Json = {}) => ({ config: site.config({ log_file_path: FILE, ...more }) });

function chained(name: string, result: unknown, more: Json): CallOptions {
  return {
    program: builtProgram(name),
    config: { cniVersion: "1.1.0", name: "net", type: name, prevResult: result, log_file_path: FILE, ...more },
  };
}

for (const by of ["its own process", "the agent"] as const) {
  describe(`a call done by ${by}`, () => {
    beforeAll(async () => {
      if (hostProblem() === undefined && by === "the agent") agent = await startAgent(site.host);
    });

    test("logs one line for an ADD, and one for a DEL: who, which addresses, which pools, how long", async () => {
      const pod = await site.makePod({ args: "K8S_POD_NAMESPACE=shop;K8S_POD_NAME=web" });
      const addresses = (await site.add(pod)).ips.map(({ address }) => address.split("/")[0]).join(",");
      const fields = {
        addresses,
        container: pod.containerId,
        ...WHO,
        milliseconds: expect.stringMatching(/^\d+\.\d$/),
        node: "node-1",
        pod: "shop/web",
        pools: "blue,blue6",
      };

      const line = { level: "INFO", component: identity.product, fields };
      expect(await logged("ADD", pod, own())).toEqual([{ ...line, message: "ADD done" }]);
      expect(await logged("DEL", pod, own())).toEqual([{ ...line, message: "DEL done" }]);
      const { pools: _, ...others } = fields;
      const nothing = { ...others, addresses: "" };
      expect(await logged("DEL", pod, own())).toEqual([{ ...line, message: "DEL done", fields: nothing }]);
    });

    test("logs the addresses of another IPAM plugin with its name", async () => {
      const pod = await site.makePod();
      for (const command of ["ADD", "DEL"] as const) {
        const [line] = await logged(command, pod, { ...own({ ipam: RANGES }), environment: { CNI_PATH: BIN } });
        expect(line?.fields).toMatchObject({
          addresses: expect.stringMatching(/^10\.77\.0\.\d+$/),
          ipam: "host-local",
        });
      }
    });

    test("logs a failure once, with what to do about it", async () => {
      const pod = await site.makePod();
      const wrong = own(POOLS_OF_HOST_LOCAL);
      expect(await logged("ADD", pod, wrong)).toMatchObject([
        {
          level: "ERROR",
          message: expect.stringContaining('"host-local" does not support pools'),
          fields: {
            command: "ADD",
            container: pod.containerId,
            details: expect.stringMatching(/^remove "ipv4_pools"/),
            milliseconds: expect.stringMatching(/^\d+\.\d$/),
          },
        },
      ]);
      const invalid = own({ num_queues: "many" });
      expect(await logged("ADD", pod, invalid)).toMatchObject([
        {
          level: "ERROR",
          message: expect.stringContaining('"num_queues" is "many"'),
          fields: { details: expect.stringContaining("config check") },
        },
      ]);
    });

    test("of portmap, bandwidth or host-local logs to the file in its own config", async () => {
      const pod = await site.makePod();
      const prevResult = await site.add(pod);
      const ports = chained(NAMES.portmap, prevResult, MAPPED);
      const rates = chained(NAMES.bandwidth, prevResult, SHAPED);
      const addresses = prevResult.ips.map(({ address }) => address.split("/")[0]).join(",");

      const mapping = { message: "ADD done", component: "portmap", fields: { ports: "tcp 8080", addresses, ...WHO } };
      expect(await logged("ADD", pod, ports)).toMatchObject([mapping]);
      expect(await logged("DEL", pod, ports)).toMatchObject([{ ...mapping, message: "DEL done" }]);
      expect(await logged("DEL", pod, ports)).toEqual([]);
      const shaping = { message: "ADD done", component: "bandwidth", fields: { ingressRate: "8000000", ...WHO } };
      expect(await logged("ADD", pod, rates)).toMatchObject([shaping]);
      expect(await logged("DEL", pod, rates)).toMatchObject([{ message: "DEL done", fields: WHO }]);
      expect(await logged("DEL", pod, rates)).toEqual([]);
      await site.quietly("DEL", pod);

      const reservation = chained("host-local", undefined, { ipam: RANGES });
      const reserved = { component: "host-local", fields: { addresses: expect.stringMatching(/^10\.77\./), ...WHO } };
      expect(await logged("ADD", pod, reservation)).toMatchObject([{ ...reserved, message: "ADD done" }]);
      expect(await logged("ADD", pod, reservation)).toMatchObject([{ component: "host-local", level: "ERROR" }]);
      expect(await logged("DEL", pod, reservation)).toMatchObject([{ ...reserved, message: "DEL done" }]);
    });

    test("of a chained plugin without a file of its own logs to the file of its network", async () => {
      const pod = await site.makePod();
      const plugins = [{ type: identity.product, log_file_path: FILE, log_level: "ERROR" }, { type: "portmap" }];
      site.host.writeFile("/etc/cni/net.d/10-other.conflist", '{"name":"other"');
      site.host.writeFile("/etc/cni/net.d/20-net.conflist", JSON.stringify({ name: "net", plugins }));
      const refused = chained(NAMES.portmap, undefined, { ...MAPPED, log_file_path: undefined });

      expect(await logged("ADD", pod, refused)).toMatchObject([{ component: "portmap", level: "ERROR" }]);
    });

    test("uses the default for a log option of a chained plugin that it cannot use, and says so", async () => {
      const pod = await site.makePod();
      const prevResult = await site.add(pod);
      const ports = chained(NAMES.portmap, prevResult, { ...MAPPED, log_level: "verbose" });

      expect((await logged("ADD", pod, ports)).map(({ level, message }) => `${level} ${message}`)).toEqual([
        'WARNING "log_level" is "verbose": expected "ERROR", "WARNING", "INFO" or "DEBUG"; INFO is used',
        "INFO ADD done",
      ]);
      await logged("DEL", pod, ports);
      await site.quietly("DEL", pod);
    });
  });
}

describe("the agent", () => {
  test("logs a failed call as ERROR, with its code, reason and details", async () => {
    const pod = await site.makePod();
    await site.call("ADD", pod, own(POOLS_OF_HOST_LOCAL));
    await agent.server.signal("KILL");
    await pollUntil(
      () => agent.log().split("starting it again")[1]?.includes("serves") === true,
      "the call server to serve again",
    );
    await agent.signal("TERM");
    await agent.ended;

    agentLog = agent.log();
    expect(linesOf(agentLog).filter(({ fields }) => fields["container"] === pod.containerId)).toMatchObject([
      {
        level: "ERROR",
        message: "plugin ADD: exit code 1",
        fields: {
          code: "7",
          reason: expect.stringContaining("host-local"),
          details: expect.stringContaining("remove"),
        },
      },
    ]);
  });
});

describe("the agent of an installed network", () => {
  test("logs its registration, what it releases, and another machine under the same name", async () => {
    await using installed = await openPluginSite("embedded", [poolChange("blue", "10.50.0.0/16")]);
    const { host } = installed;
    const becomeMachine = (id: string) => host.writeFile(`${identity.stateDirectory}/machine-id`, `${id}\n`);
    const { name, cniVersion, ...plugin } = installed.config();
    host.writeFile("/etc/cni/net.d/10-net.conflist", JSON.stringify({ name, cniVersion, plugins: [plugin] }));
    const logsOf = async (text: string) => {
      const upkeep = launchAgent(host);
      await pollUntil(() => upkeep.log().includes(text), `the agent to log "${text}"`);
      await upkeep.signal("TERM");
      await upkeep.ended;
      seen.push(...linesOf(upkeep.log()));
      return linesOf(upkeep.log());
    };

    becomeMachine("first-machine");
    expect(await logsOf("node/node-1 created")).toContainEqual(expect.objectContaining({ level: "INFO" }));
    const pod = await installed.makePod();
    await installed.add(pod, { config: installed.config({ ipam: { type: identity.ipamType } }) });
    await host.must(["ip", "netns", "delete", pod.netnsName]);
    await pollUntil(async () => (await host.must(["ip", "-o", "link", "show", "type", "veth"])) === "", "no link");
    await bootNow(host);
    await logsOf("1 leaked address");
    becomeMachine("second-machine");
    expect(await logsOf("[ERROR]")).toContainEqual(expect.objectContaining({ level: "ERROR" }));
  });
});

describe("the documentation", () => {
  test("shows only lines that are written; those of the sidecar are compared beside Envoy", () => {
    const isOther = (component: string) => component !== identity.sidecar;

    expect(unwrittenLines(isOther, [...seen, ...linesOf(agentLog)])).toEqual([]);
  });
});
