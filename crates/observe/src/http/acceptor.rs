//! Connections of who looks: no more than a number at once, with TLS where it was asked for. It knows no HTTP.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_rustls::TlsAcceptor;

use super::place::{Listener, Place, Stream};

/// Connections at once; more wait.
const CONNECTIONS_MAX: usize = 64;
/// A handshake that takes longer is given up.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// After an error of the system, such as too many open files.
const PAUSE: Duration = Duration::from_millis(200);

pub struct Connection {
    stream: Box<dyn Stream>,
    /// Its place among the connections.
    _place: OwnedSemaphorePermit,
}

pub struct Acceptor {
    ready: mpsc::Receiver<(Connection, Place)>,
    place: Place,
}

impl Acceptor {
    /// Within a runtime.
    pub fn start(listening: Listener, tls: Option<TlsAcceptor>) -> io::Result<Self> {
        let (send, ready) = mpsc::channel(CONNECTIONS_MAX);
        let place = listening.place()?;
        tokio::spawn(accept(listening, tls, send));
        Ok(Self { ready, place })
    }
}

async fn accept(listening: Listener, tls: Option<TlsAcceptor>, ready: mpsc::Sender<(Connection, Place)>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    while let Ok(permit) = Arc::clone(&places).acquire_owned().await {
        let (stream, from) = match listening.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::debug!("--http: {error}");
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        let (tls, ready) = (tls.clone(), ready.clone());
        // Each by itself: who does not finish a handshake holds up nobody.
        tokio::spawn(async move {
            let stream: Box<dyn Stream> = match tls {
                None => stream,
                Some(tls) => match tokio::time::timeout(HANDSHAKE, tls.accept(stream)).await {
                    Ok(Ok(stream)) => Box::new(stream),
                    Ok(Err(error)) => return tracing::debug!("--http: {from}: {error}"),
                    Err(_) => return,
                },
            };
            // If nobody takes it any more, the server has ended.
            let _ = ready.send((Connection { stream, _place: permit }, from)).await;
        });
    }
}

impl axum::serve::Listener for Acceptor {
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
