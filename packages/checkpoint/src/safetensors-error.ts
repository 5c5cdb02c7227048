/** What can be wrong with a safetensors file or with what is to become one. */
import { TriremeError } from "@trireme/core";

/** Kinds of failure, under the names the reference implementation gives them. */
export type SafetensorsErrorKind =
  | "HeaderTooSmall"
  | "HeaderTooLarge"
  | "InvalidHeaderLength"
  | "InvalidHeader"
  | "InvalidHeaderStart"
  | "InvalidHeaderDeserialization"
  | "InvalidOffset"
  | "TensorInvalidInfo"
  | "MetadataIncompleteBuffer"
  | "ValidationOverflow"
  | "MisalignedSlice"
  | "InvalidTensorView"
  | "TensorNotFound";

/** An error of `encodeSafetensors`, `decodeSafetensors` or `findTensor`; its code is "SAFETENSORS". */
export class SafetensorsError extends TriremeError {
  readonly kind: SafetensorsErrorKind;

  constructor(kind: SafetensorsErrorKind, message: string, options?: ErrorOptions) {
    super("SAFETENSORS", message, options);
    this.name = "SafetensorsError";
    this.kind = kind;
  }
}
