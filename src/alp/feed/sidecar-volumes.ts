/** The pods of this node that have mounted the volume of the sidecar: the feed follows it. */
export interface SidecarVolume {
  /** Of the pod. */
  readonly uid: string;
  readonly namespace: string;
  readonly pod: string;
  /**
   * The user that the sidecar runs as: no other may connect. Absent: the sidecar is of a release before v3.29, which speaks
   * policy sync and may run as any user.
   */
  readonly user?: number;
  /** On the host; mounted in the pod. The feed listens on a socket in it. */
  readonly directory: string;
}

export interface SidecarVolumes {
  /** By the UID of the pod. */
  readonly all: ReadonlyMap<string, SidecarVolume>;
  /** The UIDs of the pods whose volumes the previous agent has published. */
  readonly recovered: ReadonlySet<string>;
  /** Calls the listener after every change, until the returned function is called. */
  follow(listener: () => void): () => void;
}
