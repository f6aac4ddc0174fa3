//! Random ids, in an alphabet that is allowed in keys.

use sha2::{Digest, Sha256};

use crate::port::Host;

/// Lower-case digits of the "extended hex" base 32. Their order is the order of their bytes.
const DIGITS: &[u8; 32] = b"0123456789abcdefghijklmnopqrstuv";

/// A random id of 128 bits, as 26 digits.
pub fn random_id(host: &dyn Host) -> String {
    let mut bytes = [0; 16];
    host.random(&mut bytes);
    base32(&bytes)
}

/// A random word of 65 bits, as 13 digits: enough to distinguish two writers.
pub fn nonce(host: &dyn Host) -> String {
    let mut id = random_id(host);
    id.truncate(13);
    id
}

/// The SHA-256 of the bytes, in base 32.
pub fn digest(bytes: &[u8]) -> String {
    base32(&Sha256::digest(bytes))
}

/// The bytes in base 32, without padding.
fn base32(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() * 8 / 5 + 1);
    let (mut held, mut n_bits) = (0_u32, 0);
    for byte in bytes {
        held = (held << 8) | u32::from(*byte);
        n_bits += 8;
        while n_bits >= 5 {
            n_bits -= 5;
            out.push(digit(held >> n_bits));
        }
    }
    if n_bits > 0 {
        out.push(digit(held << (5 - n_bits)));
    }
    out
}

fn digit(value: u32) -> char {
    DIGITS.get((value & 31) as usize).copied().map_or('0', char::from)
}
