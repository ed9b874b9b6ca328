/** The request that creates a link of any kind, and the part of a message that names the kind. */
import type { MessageWriter } from "../netlink/message-writer.ts";
import type { NetlinkRequest } from "../netlink/request.ts";
import { FLAG } from "../netlink/wire.ts";
import { IFF_UP, INFO, LINK, linkHeader, RTM } from "./link-wire.ts";

export interface NewLink {
  readonly name: string;
  readonly state: "up" | "down";
  /** `ifb`, `ipip`, `vxlan` … */
  readonly kind: string;
  /** What stands before the name: MAC, MTU … */
  readonly attributes: (writer: MessageWriter) => void;
  /** The settings of the kind, if it has any. */
  readonly settings?: (writer: MessageWriter) => void;
}

/** EEXIST if the name is in use. */
export function createLink({ name, state, kind, attributes, settings }: NewLink): NetlinkRequest {
  return {
    action: `create link "${name}"`,
    type: RTM.newLink,
    flags: FLAG.create | FLAG.exclusive,
    write(writer) {
      const flags = state === "up" ? IFF_UP : 0;
      writer.raw(linkHeader(0, flags, flags));
      attributes(writer);
      writer.text(LINK.name, name);
      writeKind(writer, kind, settings);
    },
  };
}

export function writeKind(writer: MessageWriter, kind: string, settings?: (writer: MessageWriter) => void): void {
  const info = writer.openUnmarked(LINK.info);
  writer.bytes(INFO.kind, new TextEncoder().encode(kind));
  if (settings !== undefined) {
    const data = writer.openUnmarked(INFO.data);
    settings(writer);
    writer.close(data);
  }
  writer.close(info);
}
