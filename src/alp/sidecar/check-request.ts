/**
 * What Envoy asks: `CheckRequest` of its external authorization, v2 and v3 alike. Pure.
 *
 *   CheckRequest 1 attributes ─┬─ 1 source ──────┬─ 1 address ── 1 socket address ─┬─ 1 protocol
 *                              │                 └─ 4 principal                   ├─ 2 address
 *                              ├─ 2 destination ─── 1 address ── …                └─ 3 port
 *                              └─ 4 request ─────── 2 http ──────┬─ 2 method
 *                                                                └─ 4 path
 *
 * Other fields, the headers of the request among them, are skipped. A connection that is not HTTP has no `request`.
 */

import { FieldReader } from "../../grpc/field-reader.ts";
import type { HttpAttributes } from "../../http/http-match.ts";
import { type Address, parseAddress } from "../../ip/address.ts";
import { quoted } from "../../quote.ts";
import type { IncomingRequest } from "../judge/request-judge.ts";

const UDP = 1;

/** Throws an error if the message is malformed, or does not say who asks for what. */
export function decodeCheckRequest(message: Uint8Array): IncomingRequest {
  let source: Peer | undefined;
  let destination: Peer | undefined;
  let http: HttpAttributes | undefined;
  const attributes = attributesOf(message);
  for (let field = attributes.next(); field !== 0; field = attributes.next()) {
    if (field === 1) source = decodePeer(attributes.message());
    else if (field === 2) destination = decodePeer(attributes.message());
    else if (field === 4) http = decodeHttp(attributes.message());
  }
  if (source === undefined || destination === undefined) throw new Error("the source or the destination is missing");
  return {
    source: addressOf(source),
    sourcePort: source.port,
    ...(source.principal === "" ? {} : { principal: source.principal }),
    destinationPort: destination.port,
    ...(http === undefined ? {} : { http }),
  };
}

function attributesOf(message: Uint8Array): FieldReader {
  const check = FieldReader.of(message);
  let attributes: FieldReader | undefined;
  for (let field = check.next(); field !== 0; field = check.next()) if (field === 1) attributes = check.message();
  if (attributes === undefined) throw new Error("the attributes are missing");
  return attributes;
}

interface Peer {
  address: string;
  port: number;
  principal: string;
}

function decodePeer(message: FieldReader): Peer {
  const peer: Peer = { address: "", port: 0, principal: "" };
  for (let field = message.next(); field !== 0; field = message.next()) {
    if (field === 1) decodeAddress(message.message(), peer);
    else if (field === 4) peer.principal = message.text();
  }
  return peer;
}

function decodeAddress(message: FieldReader, peer: Peer): void {
  for (let field = message.next(); field !== 0; field = message.next()) {
    if (field === 1) decodeSocketAddress(message.message(), peer);
  }
}

function decodeSocketAddress(message: FieldReader, peer: Peer): void {
  for (let field = message.next(); field !== 0; field = message.next()) {
    if (field === 1 && message.number === UDP) throw new Error("requests over UDP cannot be decided");
    if (field === 2) peer.address = message.text();
    else if (field === 3) peer.port = message.number;
  }
}

function addressOf({ address: text }: Peer): Address {
  const address = parseAddress(text);
  if (address === undefined) throw new Error(`the address of the source is ${quoted(text)}`);
  return address;
}

/** `undefined` if the request is not HTTP. */
function decodeHttp(request: FieldReader): HttpAttributes | undefined {
  let http: FieldReader | undefined;
  for (let field = request.next(); field !== 0; field = request.next()) if (field === 2) http = request.message();
  if (http === undefined) return undefined;
  let method = "";
  let path = "";
  for (let field = http.next(); field !== 0; field = http.next()) {
    if (field === 2) method = http.text();
    else if (field === 4) path = http.text();
  }
  return { method, path };
}
