//! A client's login and commands: an answer or an error, never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    heddle_serve_fuzz::session(input);
});
