/** Form of a description, for messages and help. */
export const HARDWARE_FORM =
  '"8 x H100 SXM, 8 x 400G NIC" (each with "at BUSID BUSID …" where the file has more places than devices)';
