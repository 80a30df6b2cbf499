//! What comes behind a client's login, as bytes: framing, compression, commands, replies.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    heddle_serve_fuzz::stream(input);
});
