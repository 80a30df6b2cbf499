//! A client's answer to a nonce.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    heddle_serve_fuzz::proof(input);
});
