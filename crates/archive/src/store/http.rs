//! HTTP for the stores, on hyper and rustls with ring. It never retries and follows no redirect: `object_store` does the one, and no store asks for the other.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use http_body_util::BodyExt;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector as Tcp;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody, HttpResponse, HttpResponseBody,
    HttpService,
};

const CONNECT_AFTER_MAX: Duration = Duration::from_secs(5);
/// Until the head of an answer has come, and what is put before it: 8 MiB over a slow line.
const ANSWER_AFTER_MAX: Duration = Duration::from_secs(120);
const IDLE_MAX: Duration = Duration::from_secs(20);

/// Makes one client for each store.
#[derive(Debug)]
pub struct Connector;

impl HttpConnector for Connector {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        let mut tcp = Tcp::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(CONNECT_AFTER_MAX));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = HttpsConnectorBuilder::new()
            .with_provider_and_native_roots(provider)
            .map_err(|error| object_store::Error::Generic { store: "TLS", source: Box::new(error) })?
            .https_or_http()
            .enable_http1()
            .wrap_connector(tcp);
        let client =
            Client::builder(TokioExecutor::new()).pool_idle_timeout(IDLE_MAX).pool_timer(TokioTimer::new()).build(tls);
        Ok(HttpClient::new(Service(client)))
    }
}

#[derive(Debug)]
struct Service(Client<HttpsConnector<Tcp>, HttpRequestBody>);

#[async_trait]
impl HttpService for Service {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let answer = match tokio::time::timeout(ANSWER_AFTER_MAX, self.0.request(request)).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => {
                let kind = if error.is_connect() { HttpErrorKind::Connect } else { kind_of(&error) };
                return Err(HttpError::new(kind, error));
            }
            Err(late) => return Err(HttpError::new(HttpErrorKind::Timeout, late)),
        };
        let (parts, body) = answer.into_parts();
        let body = body.map_err(|error| HttpError::new(kind_of(&error), error));
        Ok(HttpResponse::from_parts(parts, HttpResponseBody::new(body)))
    }
}

/// A connection that was lost may be tried again; what can not be understood may not.
fn kind_of(error: &(dyn std::error::Error + 'static)) -> HttpErrorKind {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<hyper::Error>() {
            if error.is_parse() {
                return HttpErrorKind::Decode;
            }
            if error.is_timeout() {
                return HttpErrorKind::Timeout;
            }
        }
        cause = error.source();
    }
    HttpErrorKind::Interrupted
}
