use std::{env, sync::Arc, time::Duration};

use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use axum::response::Response;
use axum::{Router, routing::get, routing::post};
use axum_idempotent::{IdempotentLayer, IdempotentOptions};
use fred::prelude::{Builder, Client, ClientLike, Config};
use ruts::store::redis::RedisStore;
use ruts::{CookieOptions, SessionLayer};
use tower_cookies::CookieManagerLayer;

fn thrown(why: impl ToString) -> (StatusCode, String) {
    (StatusCode::INTERNAL_SERVER_ERROR, why.to_string())
}

async fn effect(body: Bytes) -> Result<Response, (StatusCode, String)> {
    let client = reqwest::Client::builder().pool_max_idle_per_host(0).build().map_err(thrown)?;
    let told = client.post(env::var("SINK_URL").unwrap()).body(body).send().await.map_err(thrown)?;
    if told.headers().contains_key("holdfast-throw") {
        return Err(thrown("the handler throws"));
    }
    let mut answer = Response::builder().status(told.status());
    for name in ["content-type", "location", "etag", "link", "set-cookie"] {
        for value in told.headers().get_all(name) {
            answer = answer.header(name, value);
        }
    }
    Ok(answer.body(Body::from(told.bytes().await.map_err(thrown)?)).unwrap())
}

#[tokio::main]
async fn main() {
    let config = Config::from_url(&env::var("STORE_URL").unwrap()).unwrap();
    let client = Builder::from_config(config)
        .with_performance_config(|it| it.default_command_timeout = Duration::from_secs(2))
        .build()
        .unwrap();
    client.init().await.unwrap();
    let store = Arc::new(RedisStore::new(Arc::new(client)).await.unwrap());
    let options = IdempotentOptions::default()
        .use_idempotency_key_header(Some("Idempotency-Key"), true)
        .expire_after(60 * 5);
    let app = Router::new()
        .route("/orders", post(effect))
        .route("/refunds", post(effect))
        .layer(IdempotentLayer::<RedisStore<Client>>::new(options))
        .layer(SessionLayer::new(store).with_cookie_options(CookieOptions::build().name("session")))
        .layer(CookieManagerLayer::new())
        .route("/health", get(|| async { "ok" }));
    let address = format!("127.0.0.1:{}", env::var("PORT").unwrap());
    let listener = tokio::net::TcpListener::bind(address).await.unwrap();
    axum::serve(listener, app).await.unwrap();
}
