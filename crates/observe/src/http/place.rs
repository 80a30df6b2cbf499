//! Where `--http` listens: an address of the network, or a socket's file of this machine. Knows no HTTP.

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use rustix::fs::{Mode, chmod};
use tokio::io::{AsyncRead, AsyncWrite};

/// Before the path of a socket's file.
const UNIX: &str = "unix:";

/// `HOST:PORT` or `unix:PATH`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    Network(SocketAddr),
    /// Only the user who made it may open it.
    Socket(PathBuf),
}

impl Place {
    /// Nobody on another machine can reach it.
    pub fn is_local(&self) -> bool {
        match self {
            Self::Network(address) => address.ip().is_loopback(),
            Self::Socket(_) => true,
        }
    }
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(path) = socket_path(text) {
            return path.map(Self::Socket);
        }
        let text = text.strip_prefix("localhost:").map_or_else(|| text.to_owned(), |port| format!("127.0.0.1:{port}"));
        text.parse().map(Self::Network).map_err(|_| {
            "expected an address and a port, such as 127.0.0.1:9104 or 0.0.0.0:9104, or unix:PATH".to_owned()
        })
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Network(address) => address.fmt(f),
            Self::Socket(path) => write!(f, "{UNIX}{}", path.display()),
        }
    }
}

/// Of `unix:PATH`. `None`: the text is something else.
pub fn socket_path(text: &str) -> Option<Result<PathBuf, String>> {
    let path = text.strip_prefix(UNIX)?;
    Some(if path.is_empty() { Err(format!("{text:?} names no file")) } else { Ok(PathBuf::from(path)) })
}

/// LogSource at a socket's file. Nobody is waited for longer than `patience`.
pub fn connect_to_socket(path: &Path, patience: Duration) -> io::Result<UnixStream> {
    let stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))?;
    Ok(stream)
}

/// Of one who looks.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Who comes is taken here. A socket's file goes when it is dropped.
#[derive(Debug)]
pub enum Listener {
    Network(tokio::net::TcpListener),
    Socket(tokio::net::UnixListener, SocketFile),
}

#[derive(Debug)]
pub struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

impl Listener {
    /// Within a runtime.
    ///
    /// # Errors
    /// Something else listens there, or the system does not allow it. A file that is no socket is left alone.
    pub fn start(place: &Place) -> io::Result<Self> {
        match place {
            Place::Network(address) => {
                let listener = TcpListener::bind(address)?;
                listener.set_nonblocking(true)?;
                tokio::net::TcpListener::from_std(listener).map(Self::Network)
            }
            Place::Socket(path) => {
                remove_left_over(path)?;
                let listener = UnixListener::bind(path)?;
                let file = SocketFile(path.clone());
                chmod(path, Mode::RUSR | Mode::WUSR)?;
                listener.set_nonblocking(true)?;
                Ok(Self::Socket(tokio::net::UnixListener::from_std(listener)?, file))
            }
        }
    }

    /// The next one who comes, and from where.
    pub async fn accept(&self) -> io::Result<(Box<dyn Stream>, Place)> {
        match self {
            Self::Network(listener) => {
                let (stream, from) = listener.accept().await?;
                let _ = stream.set_nodelay(true);
                Ok((Box::new(stream), Place::Network(from)))
            }
            Self::Socket(listener, SocketFile(path)) => {
                let (stream, _) = listener.accept().await?;
                Ok((Box::new(stream), Place::Socket(path.clone())))
            }
        }
    }

    /// Where it is. A port that the system has chosen is known only here.
    pub fn place(&self) -> io::Result<Place> {
        match self {
            Self::Network(listener) => listener.local_addr().map(Place::Network),
            Self::Socket(_, SocketFile(path)) => Ok(Place::Socket(path.clone())),
        }
    }
}

/// A process that was killed leaves its file.
fn remove_left_over(path: &Path) -> io::Result<()> {
    let is_socket = match path.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        found => found?.file_type().is_socket(),
    };
    match UnixStream::connect(path) {
        Err(error) if is_socket && error.kind() == io::ErrorKind::ConnectionRefused => std::fs::remove_file(path),
        _ => Err(io::ErrorKind::AddrInUse.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places() {
        let network = |text: &str| Ok(Place::Network(text.parse().unwrap()));
        assert_eq!("localhost:9188".parse(), network("127.0.0.1:9188"));
        assert_eq!("[::1]:9188".parse(), network("[::1]:9188"));
        assert_eq!("unix:/run/h.sock".parse(), Ok(Place::Socket("/run/h.sock".into())));
        for refused in ["9188", "db1:9188", ":9188", "unix:", "unix"] {
            assert!(refused.parse::<Place>().is_err(), "{refused}");
        }
        for text in ["127.0.0.1:1", "[::1]:1", "unix:a/b"] {
            assert_eq!(text.parse::<Place>().unwrap().to_string(), text);
        }
        assert!(!"0.0.0.0:1".parse::<Place>().unwrap().is_local());
    }

    #[test]
    fn a_socket_of_a_process_that_is_gone_is_replaced_and_nothing_else() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
        let _within = runtime.enter();
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("h.sock");
        let place = Place::Socket(path.clone());
        let first = Listener::start(&place).unwrap();
        assert!(Listener::start(&place).is_err(), "twice");
        drop(first);
        assert!(!path.exists());
        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        drop(Listener::start(&place).unwrap());
        std::fs::write(&path, "mine").unwrap();
        assert!(Listener::start(&place).is_err());
        assert_eq!(std::fs::read(&path).unwrap(), b"mine");
    }
}
