/** The parts that all requests about links share. */
import { type Attributes, attributesOf, type KernelRequest } from "../message.ts";

const HEADER_LENGTH = 16;

export interface LinkRequest {
  readonly request: KernelRequest;
  readonly index: number;
  readonly flags: number;
  readonly changed: number;
  readonly attributes: Attributes;
}

export function readLinkRequest(request: KernelRequest): LinkRequest {
  const attributes = attributesOf(request, HEADER_LENGTH);
  const { payload } = request;
  return {
    request,
    attributes,
    index: payload.getInt32(4, true),
    flags: payload.getUint32(8, true),
    changed: payload.getUint32(12, true),
  };
}
