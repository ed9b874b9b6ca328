/** What the kernel of a host can do, as far as the product needs it. */
export interface KernelFeatures {
  /** `6.1.0-18-amd64` */
  readonly release: string;
  readonly features: readonly KernelFeature[];
}

export interface KernelFeature {
  readonly name: string;
  /** What does not work without it. */
  readonly neededBy: string;
  /** "always", or only with the setting that `neededBy` names. */
  readonly need: "always" | "sometimes";
  /** What the kernel said when it was tried; absent if it works. */
  readonly failure?: string;
  /** The kernel module that has it. */
  readonly module?: string;
}
