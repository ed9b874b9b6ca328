/**
 * What the kubelet calls: the registration of the driver, and the part of CSI that ephemeral volumes need. Every other
 * method is unimplemented, and the driver says that it has none of the optional abilities.
 */
import { delimited, Fields, message } from "../../grpc/protobuf.ts";
import type { GrpcHandlers } from "../../grpc/server.ts";
import { identity } from "../../identity.ts";
import { VERSION } from "../../version.ts";
import type { PublishedVolumes } from "./published-volumes.ts";
import { volumeRequest, volumeToRemove } from "./volume-request.ts";

/** Versions of CSI that the kubelet is offered. */
const CSI_VERSIONS = ["1.0.0"];
const EMPTY = new Uint8Array();

export interface Registration {
  /** Of the socket on which CSI is served. */
  readonly endpoint: string;
  /** `error` is empty if the kubelet uses the driver now. */
  readonly notify: (error: string) => void;
}

export function registrationService({ endpoint, notify }: Registration): GrpcHandlers {
  const service = "/pluginregistration.Registration";
  return {
    [`${service}/GetInfo`]: () =>
      message(
        delimited(1, "CSIPlugin"),
        delimited(2, identity.csiDriver),
        delimited(3, endpoint),
        ...CSI_VERSIONS.map((version) => delimited(4, version)),
      ),
    [`${service}/NotifyRegistrationStatus`]: (request) => {
      const status = new Fields(request);
      notify(status.flag(1) ? "" : status.text(2) || "it does not say why");
      return EMPTY;
    },
  };
}

export function csiServices(volumes: PublishedVolumes, node: string): GrpcHandlers {
  return {
    "/csi.v1.Identity/GetPluginInfo": () => message(delimited(1, identity.csiDriver), delimited(2, VERSION)),
    "/csi.v1.Identity/GetPluginCapabilities": () => EMPTY,
    // Without a value it is ready.
    "/csi.v1.Identity/Probe": () => EMPTY,
    "/csi.v1.Node/NodeGetInfo": () => delimited(1, node),
    "/csi.v1.Node/NodeGetCapabilities": () => EMPTY,
    "/csi.v1.Node/NodePublishVolume": (request) => {
      volumes.publish(volumeRequest(new Fields(request)));
      return EMPTY;
    },
    "/csi.v1.Node/NodeUnpublishVolume": (request) => {
      volumes.unpublish(volumeToRemove(new Fields(request)));
      return EMPTY;
    },
  };
}
