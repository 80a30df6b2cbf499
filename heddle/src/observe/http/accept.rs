//! Connections of who looks: no more than a number at once, with TLS where it was asked for. It knows no HTTP.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_rustls::TlsAcceptor;

use super::place::{Listening, Place, SocketFile};

/// Connections at once; more wait.
const CONNECTIONS_MAX: usize = 64;
/// A handshake that takes longer is given up.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// After an error of the system, such as too many open files.
const PAUSE: Duration = Duration::from_millis(200);

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

pub struct Connection {
    stream: Box<dyn Stream>,
    /// Its place among the connections.
    _place: OwnedSemaphorePermit,
}

pub struct Accepting {
    ready: mpsc::Receiver<(Connection, Place)>,
    place: Place,
}

enum Listener {
    Network(TcpListener),
    Socket(UnixListener, #[expect(dead_code, reason = "it goes with the listener")] SocketFile),
}

impl Listener {
    fn of(listening: Listening) -> io::Result<Self> {
        Ok(match listening {
            Listening::Network(listener) => Self::Network(TcpListener::from_std(listener)?),
            Listening::Socket(listener, file) => Self::Socket(UnixListener::from_std(listener)?, file),
        })
    }

    async fn accept(&self) -> io::Result<Box<dyn Stream>> {
        Ok(match self {
            Self::Network(listener) => {
                let (stream, _) = listener.accept().await?;
                let _ = stream.set_nodelay(true);
                Box::new(stream)
            }
            Self::Socket(listener, _) => Box::new(listener.accept().await?.0),
        })
    }
}

impl Accepting {
    /// Within a runtime.
    pub fn start(listening: Listening, tls: Option<TlsAcceptor>) -> io::Result<Self> {
        let (send, ready) = mpsc::channel(CONNECTIONS_MAX);
        let place = listening.place()?;
        tokio::spawn(accept(Listener::of(listening)?, tls, send, place.clone()));
        Ok(Self { ready, place })
    }
}

async fn accept(listener: Listener, tls: Option<TlsAcceptor>, ready: mpsc::Sender<(Connection, Place)>, place: Place) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    while let Ok(permit) = Arc::clone(&places).acquire_owned().await {
        let stream = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::debug!("--http: {error}");
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        let (tls, ready, at) = (tls.clone(), ready.clone(), place.clone());
        // Each by itself: who does not finish a handshake holds up nobody.
        tokio::spawn(async move {
            let stream: Box<dyn Stream> = match tls {
                None => stream,
                Some(tls) => match tokio::time::timeout(HANDSHAKE, tls.accept(stream)).await {
                    Ok(Ok(stream)) => Box::new(stream),
                    Ok(Err(error)) => return tracing::debug!("--http: {error}"),
                    Err(_) => return,
                },
            };
            // If nobody takes it any more, the server has ended.
            let _ = ready.send((Connection { stream, _place: permit }, at)).await;
        });
    }
}

impl axum::serve::Listener for Accepting {
    type Io = Connection;
    type Addr = Place;

    async fn accept(&mut self) -> (Connection, Place) {
        match self.ready.recv().await {
            Some(accepted) => accepted,
            // The task that accepts ends only with the runtime.
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<Place> {
        Ok(self.place.clone())
    }
}

impl AsyncRead for Connection {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, to: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, to)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
