use std::{env, sync::Arc};

use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::{Router, routing::get, routing::post};
use axum_idempotent::{IdempotentLayer, IdempotentOptions};
use ruts::store::moka::MokaStore;
use ruts::{CookieOptions, SessionLayer};
use tower_cookies::CookieManagerLayer;

struct Thrown(String);

impl IntoResponse for Thrown {
    fn into_response(self) -> Response {
        (StatusCode::INTERNAL_SERVER_ERROR, self.0).into_response()
    }
}

impl From<reqwest::Error> for Thrown {
    fn from(error: reqwest::Error) -> Self {
        Thrown(error.to_string())
    }
}

async fn effect(body: Bytes) -> Result<Response, Thrown> {
    let client = reqwest::Client::builder().pool_max_idle_per_host(0).build()?;
    let told = client.post(env::var("SINK_URL").unwrap()).body(body).send().await?;
    if told.headers().contains_key("holdfast-throw") {
        return Err(Thrown("the handler throws".into()));
    }
    let mut answer = Response::builder().status(told.status());
    for name in ["content-type", "location", "etag", "link", "set-cookie"] {
        for value in told.headers().get_all(name) {
            answer = answer.header(name, value);
        }
    }
    Ok(answer.body(Body::from(told.bytes().await?)).unwrap())
}

#[tokio::main]
async fn main() {
    let store = Arc::new(MokaStore::builder().build());
    let options = IdempotentOptions::default()
        .use_idempotency_key_header(Some("Idempotency-Key"), true)
        .expire_after(60 * 5);
    let app = Router::new()
        .route("/orders", post(effect).get(|| async { "ok" }))
        .route("/refunds", post(effect))
        .layer(IdempotentLayer::<MokaStore>::new(options))
        .layer(SessionLayer::new(store).with_cookie_options(CookieOptions::build().name("session")))
        .layer(CookieManagerLayer::new())
        .route("/health", get(|| async { "ok" }));
    let address = format!("127.0.0.1:{}", env::var("PORT").unwrap());
    let listener = tokio::net::TcpListener::bind(address).await.unwrap();
    axum::serve(listener, app).await.unwrap();
}
