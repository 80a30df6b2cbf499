//! Sleeps until all answers to a packet of many statements have come. A server sends each by itself, and to wake up for an answer costs more
//! than to read it.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use rustix::event::{PollFd, PollFlags, Timespec};

/// An OK packet: header 4, kind 1, affected rows and insert id at least 1 each, status 2, warnings 2.
const OK_BYTES: usize = 11;
/// After an error no more answers come: then it is read this much later.
const PATIENCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };

/// Returns when the answers to so many statements can be read at once, or after [`PATIENCE`]. Reads nothing.
///
/// Where the system cannot wait for an amount (sockets that are not TCP), at the first answer.
pub fn await_answers<C: AsFd>(connection: &C, statements: usize) {
    if statements < 2 {
        return;
    }
    let socket = connection.as_fd();
    // An error of one of these only means that the reader, who comes next, waits himself.
    if set_low_water(socket, statements * OK_BYTES) {
        wait(socket);
        set_low_water(socket, 1);
    }
}

/// socket(7), `SO_RCVLOWAT`: from how many bytes on the socket is readable.
#[expect(unsafe_code, reason = "rustix does not have this option")]
fn set_low_water(socket: BorrowedFd<'_>, bytes: usize) -> bool {
    let bytes = libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX);
    // SAFETY: the descriptor is open for as long as it is borrowed, and the option is read from a c_int of the length given.
    unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_RCVLOWAT,
            (&raw const bytes).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        ) == 0
    }
}

/// poll(2): until it is readable, has ended, or has an error.
fn wait(socket: BorrowedFd<'_>) {
    let mut polled = [PollFd::from_borrowed_fd(socket, PollFlags::IN)];
    let _ = rustix::event::poll(&mut polled, Some(&PATIENCE));
}
