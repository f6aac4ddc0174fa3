//! Ids out of chance, and the alphabet they share with keys.

use sha2::{Digest, Sha256};

use crate::port::Host;

/// Digits of the extended hex alphabet of base 32, in lower case: their order is the order of the bytes.
const DIGITS: &[u8; 32] = b"0123456789abcdefghijklmnopqrstuv";

/// 128 bits of chance, as 26 digits.
pub fn mint(host: &dyn Host) -> String {
    let mut bytes = [0; 16];
    host.random(&mut bytes);
    base32(&bytes)
}

/// 65 bits of chance, as 13 digits: enough to tell two writers apart.
pub fn nonce(host: &dyn Host) -> String {
    let mut id = mint(host);
    id.truncate(13);
    id
}

/// What tells these bytes from all others.
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
