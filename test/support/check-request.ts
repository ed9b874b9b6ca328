/** Builds what Envoy asks an authorizer: `CheckRequest` of its external authorization. */
import { delimited, message, varint } from "../../src/grpc/protobuf.ts";

export interface AskedCheck {
  readonly source?: string;
  readonly sourcePort?: number;
  readonly principal?: string;
  readonly destination?: string;
  readonly destinationPort?: number;
  /** Absent: a connection that is not HTTP. */
  readonly http?: { readonly method: string; readonly path: string };
  readonly isUdp?: true;
}

export function checkRequest(asked: AskedCheck): Uint8Array {
  const {
    source = "10.0.0.1",
    sourcePort = 40_000,
    principal,
    destination = "10.0.0.2",
    destinationPort = 8080,
  } = asked;
  const from = message(
    delimited(1, addressOf(source, sourcePort, asked.isUdp)),
    delimited(2, "a service"),
    ...(principal === undefined ? [] : [delimited(4, principal)]),
  );
  const request = asked.http && delimited(4, message(delimited(1, varint(1, 1_700_000_000n)), httpOf(asked.http)));
  return delimited(
    1,
    message(
      delimited(1, from),
      delimited(2, delimited(1, addressOf(destination, destinationPort, asked.isUdp))),
      request ?? message(),
      delimited(10, message(delimited(1, "extension"), delimited(2, "value"))),
    ),
  );
}

function addressOf(address: string, port: number, isUdp = false): Uint8Array {
  return delimited(1, message(varint(1, isUdp ? 1n : 0n), delimited(2, address), varint(3, BigInt(port))));
}

function httpOf({ method, path }: NonNullable<AskedCheck["http"]>): Uint8Array {
  const header = (name: string, value: string) => delimited(3, message(delimited(1, name), delimited(2, value)));
  const fields = [delimited(1, "identifier"), delimited(2, method), header(":path", "/other"), header("x-a", "b")];
  // The size of an unknown body is -1.
  return delimited(2, message(...fields, delimited(4, path), delimited(5, "host"), varint(9, -1n)));
}
