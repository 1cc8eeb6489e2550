/**
 * Addend beside DJL (Deep Java Library): explains what its PyTorch engine serves. Both compute with the LibTorch that DJL
 * brings, so arrays go from one to the other without a copy ({@link dev.addend.djl.Djl}), and a translator gives predictions
 * with their reasons ({@link dev.addend.djl.ExplainingTranslator}).
 */
package dev.addend.djl;
