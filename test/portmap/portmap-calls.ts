/** The plugin alone on a private host, called as by a runtime after another plugin, whose result the test provides. */
import { expect } from "bun:test";
import type { JsonObject } from "../../src/cni/json.ts";
import type { Finished } from "../support/host.ts";
import { BIN_DIRECTORY } from "../support/network-under-test.ts";
import type { PortHost, PortMappingRequest } from "./port-host.ts";

export interface PortmapCall {
  readonly id?: string;
  readonly ifname?: string;
  readonly netns?: string;
  readonly network?: string;
  readonly cniVersion?: string;
  /** With prefix lengths; without addresses there is no prevResult. */
  readonly addresses?: readonly string[];
  readonly ports?: readonly PortMappingRequest[];
  /** Options of the plugin, and other fields of the config. */
  readonly config?: JsonObject;
  /** The command before the plugin's name, such as a tracer. */
  readonly under?: readonly string[];
}

export interface Portmap {
  run(command: string, call?: PortmapCall): Promise<Finished>;
  /** Throws unless the call succeeds. */
  must(command: string, call?: PortmapCall): Promise<Finished>;
  /** Throws unless the call fails with this code; returns the message. */
  refused(command: string, code: number, call?: PortmapCall): Promise<string>;
}

export function port(hostPort: number, hostIP?: string, protocol = "tcp"): PortMappingRequest {
  return { hostPort, containerPort: 80, protocol, ...(hostIP === undefined ? {} : { hostIP }) };
}

export function portmapOn({ host }: PortHost, directory = BIN_DIRECTORY): Portmap {
  const run = (command: string, call: PortmapCall = {}) => {
    const { id = "one", ifname = "eth0", netns = `/run/netns/vt-${id}` } = call;
    return host.run([...(call.under ?? []), `${directory}/portmap`], {
      limitMilliseconds: 100_000,
      stdin: JSON.stringify(configOf(call, ifname, netns)),
      environment: {
        CNI_COMMAND: command,
        CNI_CONTAINERID: id,
        CNI_NETNS: netns,
        CNI_IFNAME: ifname,
        CNI_PATH: directory,
      },
    });
  };
  return {
    run,
    async must(command, call) {
      const finished = await run(command, call);
      if (finished.code !== 0) throw new Error(`${command} failed: ${finished.stdout}${finished.stderr}`);
      return finished;
    },
    async refused(command, code, call) {
      const { stdout, code: exitCode } = await run(command, call);
      expect(exitCode).toBe(1);
      const error = JSON.parse(stdout);
      expect([error.code, error.msg]).toEqual([code, expect.any(String)]);
      // The details explain; they do not repeat the message.
      expect(error.msg).not.toContain(error.details || "nothing");
      return error.msg;
    },
  };
}

function configOf(call: PortmapCall, ifname: string, netns: string): JsonObject {
  const { network = "ports", cniVersion = "1.1.0", addresses, ports, config = {} } = call;
  const versioned = cniVersion.startsWith("0.");
  const ips = (addresses ?? []).map((address) => ({
    ...(versioned ? { version: address.includes(":") ? "6" : "4" } : {}),
    address,
    interface: 1,
  }));
  const interfaces = [{ name: "veth0" }, { name: ifname, sandbox: netns }];
  return {
    cniVersion,
    name: network,
    type: "portmap",
    ...(addresses === undefined ? {} : { prevResult: { cniVersion, interfaces, ips } }),
    ...(ports === undefined ? {} : { runtimeConfig: { portMappings: ports } }),
    ...config,
  };
}
