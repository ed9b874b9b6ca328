import { describe, expect, test } from "bun:test";
import { thrownBy } from "../../../test/support/thrown-by.ts";
import { decodePortMappings } from "./mapping.ts";

const decode = (portMappings: unknown) => decodePortMappings({ runtimeConfig: { portMappings } });
const BASE = { hostPort: 8080, containerPort: 80, protocol: "tcp" };

describe("decodePortMappings()", () => {
  test("asks for nothing where the runtime says nothing", () => {
    for (const config of [
      {},
      { runtimeConfig: null },
      { runtimeConfig: {} },
      { runtimeConfig: { portMappings: null } },
    ]) {
      expect(decodePortMappings(config)).toEqual([]);
    }
    expect(decode([])).toEqual([]);
  });

  test.each([
    [{ ...BASE }, { hostPort: 8080, containerPort: 80, protocol: "tcp" }],
    [
      { ...BASE, protocol: "UDP" },
      { hostPort: 8080, containerPort: 80, protocol: "udp" },
    ],
    [
      { ...BASE, protocol: "Sctp", hostIP: "" },
      { hostPort: 8080, containerPort: 80, protocol: "sctp" },
    ],
    [
      { hostPort: 1, containerPort: 65535 },
      { hostPort: 1, containerPort: 65535, protocol: "tcp" },
    ],
    [
      { HostPort: 8080, ContainerPort: 80, Protocol: "tcp", HostIP: "" },
      { hostPort: 8080, containerPort: 80, protocol: "tcp" },
    ],
    [
      { ...BASE, hostIP: "0.0.0.0" },
      { ...BASE, hostIp: { family: 4, value: 0n } },
    ],
    [
      { ...BASE, hostIP: "::" },
      { ...BASE, hostIp: { family: 6, value: 0n } },
    ],
    [
      { ...BASE, hostIP: "::ffff:192.0.2.1" },
      { ...BASE, hostIp: { family: 4, value: 0xc0000201n } },
    ],
  ])("reads %j", (entry, mapping) => {
    expect(decode([entry])).toEqual([mapping] as ReturnType<typeof decode>);
  });

  test.each([
    [{ ...BASE, hostPort: 0 }, "hostPort"],
    [{ ...BASE, hostPort: -1 }, "hostPort"],
    [{ ...BASE, hostPort: 65536 }, "hostPort"],
    [{ ...BASE, hostPort: 80.5 }, "hostPort"],
    [{ ...BASE, hostPort: "80" }, "hostPort"],
    [{ containerPort: 80 }, "hostPort"],
    [{ ...BASE, containerPort: 70000 }, "containerPort"],
    [{ ...BASE, protocol: "icmp" }, "protocol"],
    [{ ...BASE, protocol: 6 }, "protocol"],
    [{ ...BASE, hostIP: "localhost" }, "hostIP"],
    [{ ...BASE, hostIP: "::1" }, 'hostIP is "::1": the kernel cannot route replies back to it; use 127.0.0.1'],
    [{ ...BASE, hostIP: "10.0.0.1/24" }, "hostIP"],
  ])("refuses %j", (entry, field) => {
    const error = thrownBy(() => decode([BASE, entry]));
    expect(error.kind).toBe("config-invalid");
    expect(error.message).toContain(`portMappings[1].${field}`);
  });

  test("names every problem at once", () => {
    const { message } = thrownBy(() =>
      decode([
        { hostPort: 0, containerPort: 0 },
        { ...BASE, protocol: "x" },
      ]),
    );
    for (const place of ["[0].hostPort", "[0].containerPort", "[1].protocol"]) expect(message).toContain(place);
  });

  test.each([[{}], ["x"], [[1]], [[null]]])("refuses %j as misshapen", (list) => {
    expect(thrownBy(() => decode(list)).kind).toBe("decode-failure");
  });
});
