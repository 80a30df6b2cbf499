//! One connection to a source: which server is chosen, whether it has the mirror's history, and where its stream begins.

use std::sync::Arc;
use std::time::{Duration, Instant};

use binlog::{FIRST_OFFSET, LogPosition};
use engine::failure::Failure;
use wire::Connection;
use wire::reach::password_cache_warning;

use super::{ConnectionEnd, Mirror, for_good, refused};
use crate::inventory::{MirrorPhase, SOURCE_FACTS, SourceFacts};
use crate::mirror::disk::files::of_folder;
use crate::mirror::disk::folder::Folder;
use crate::mirror::disk::owner::{self, Owner};
use crate::mirror::plan::EndCondition;
use crate::mirror::source::successor::{self, MirrorHistory, SourceSelection, Successor};
use crate::mirror::source::{self, NextStep, StreamStart, Upstream, history};
use crate::mirror::stream::EventReceiver;

impl Mirror<'_> {
    /// Makes one connection, and reads from the mirror's end on. It connects to a source of the list, or to the one that an order names.
    pub(super) fn connection(&mut self) -> Result<ConnectionEnd, Failure> {
        let Some(order) = self.orders.take() else {
            let upstreams = self.upstreams.clone();
            return self.connection_to(&upstreams, self.plan.patience, &|_| {});
        };
        let answered = |answer| order.answer(answer);
        let before = self.owner.clone();
        let ended = self.connection_to(&order.upstreams, Duration::ZERO, &answered);
        if let (Some(owner), true) = (&self.owner, self.owner != before) {
            // The mirror has become its, whatever came then.
            order.answer(Ok(owner.source.clone()));
        }
        match ended {
            // Nothing has changed, and nobody else is to be told.
            Err(failure) if !order.is_answered() => {
                order.answer(Err(for_good(failure)));
                Ok(ConnectionEnd::AtSeam)
            }
            ended => {
                self.upstreams.clone_from(&order.upstreams);
                ended
            }
        }
    }

    /// `followed` is told once the source is known to have the mirror's history.
    pub(super) fn connection_to(
        &mut self,
        upstreams: &[Upstream],
        patience: Duration,
        followed: &dyn Fn(Result<String, Failure>),
    ) -> Result<ConnectionEnd, Failure> {
        let mirrored = MirrorHistory {
            owner: self.owner.as_ref(),
            last_boundary: self.last.as_ref().map(|last| &last.last_boundary),
            away: self.lost_since.map(|since| since.elapsed()).unwrap_or_default(),
            patience,
        };
        let SourceSelection { upstream, mut connection, state, successor } = successor::choose(upstreams, &mirrored)?;
        let mut upstream = upstream.clone();
        let address = upstream.options.address();
        if connection.needs_password_cache() && self.warned_of.as_ref() != Some(&address) {
            tracing::warn!("{address}: {}", password_cache_warning("source"));
            self.warned_of = Some(address);
        }
        if let Some(acks) = &mut self.acks {
            // Before any stream of its number.
            acks.lease(&mut connection)?;
            upstream.server_id = acks.server_id();
        }
        if let Some(successor) = successor {
            self.follow(Owner::new(state.flavour, &state.identity), successor)?;
        }
        if self.owner.is_none() {
            let owner = Owner::new(state.flavour, &state.identity);
            self.folder.replace(owner::FILE, &text_of(&owner)?).map_err(|error| of_folder(&error))?;
            self.inventory.is_of(&owner.source);
            self.owner = Some(owner);
        }
        if self.plan.until == EndCondition::SourceEnd && self.end.is_none() {
            self.end = Some(state.end.clone());
        }
        self.settled_at = Some(state.end.clone());
        self.inventory.stand(MirrorPhase::Settling);
        let (at, arriving) = match &self.last {
            None => {
                let oldest = state.logs.first().map(|log| &log.file);
                let first = self.first.as_ref().or(oldest).ok_or_else(|| refused("the source has no log files"))?;
                (LogPosition::new(Arc::clone(first), FIRST_OFFSET), EventReceiver::default())
            }
            Some(last) => {
                history::check_lists(last, &state)?;
                history::compare_head(&upstream, &state.identity, last)?;
                let again = LogPosition::new(Arc::clone(&last.end.file), last.again_from);
                let format = last
                    .format()
                    .cloned()
                    .ok_or_else(|| refused("the mirror's last file has no format description"))?;
                (again.clone(), EventReceiver::resume(again, format, last.gtids.clone()))
            }
        };
        // Only now: it is the mirror's source, and has its history.
        let facts = self.learn(&mut connection)?;
        let attaching = self.acks.as_mut().map(|acks| acks.attach(&at, &facts, &upstream.options));
        let attaching = attaching.unwrap_or_default();
        tracing::info!("mirroring {} from {at} into {}", state.identity, self.folder.dir().display());
        self.compared = self.last.as_ref().map(|last| last.end.clone());
        let from = StreamStart { at, server_id: upstream.server_id, attaching, at_end: NextStep::Wait };
        let stream = source::stream(connection, &from, &state.identity)?;
        followed(Ok(state.identity.clone()));
        self.attached = Some(Instant::now());
        self.was_reached = true;
        self.told.reached();
        self.monitor.connected(&upstream.options, &state.identity);
        let shutdown = stream.shutdown_handle();
        let _interrupted = self.orders.interrupt(&shutdown);
        shutdown.unless_stopped(self.stop, || self.read(stream, arriving))
    }

    /// Another source has taken the place of the one before: its files go into a folder of their own.
    pub(super) fn follow(&mut self, owner: Owner, successor: Successor) -> Result<(), Failure> {
        let Successor { first, seam } = successor;
        if self.acks.as_ref().is_some_and(|acks| acks.waits_for_others()) {
            return Err(refused(format!(
                "{} could take the place of {}: it has all transactions of the mirror. But the other heddles have confirmed positions of the former source",
                owner.source, seam.source
            ))
            .remedy("run it once with --ack off and --until-end, so that the mirror follows; make the others mirrors of the new source, too; then run it with --ack again"));
        }
        tracing::warn!(
            "{} replaces {}, whose files end at {}: it has all of their transactions",
            owner.source,
            seam.source,
            seam.position
        );
        let end = seam.position.parse::<LogPosition>().map_or(0, |end| end.offset);
        let owner = owner.after(seam);
        let dir = self.epochs.begin(&owner.source, &text_of(&owner)?).map_err(|error| of_folder(&error))?;
        (self.folder, self.last) = Folder::open(Arc::clone(&self.fs), &dir).map_err(|error| of_folder(&error))?;
        // What replicas are sent of the former source ends at the seam, and no stream goes over it.
        self.inventory.stand(MirrorPhase::Settling);
        self.inventory.succeed(end);
        (self.owner, self.first, self.end) = (Some(owner), Some(first), None);
        self.publish_all()
    }

    /// Asks the source what replicas will ask for, and stores it.
    pub(super) fn learn(&self, connection: &mut Connection) -> Result<SourceFacts, Failure> {
        let facts = SourceFacts::ask(connection).map_err(|error| source::failed("SHOW GLOBAL VARIABLES", &error))?;
        let text = facts.to_json().map_err(|error| refused(error.to_string()))?;
        self.folder.replace(SOURCE_FACTS, &text).map_err(|error| of_folder(&error))?;
        self.inventory.learn(facts.clone());
        Ok(facts)
    }
}

fn text_of(owner: &Owner) -> Result<Vec<u8>, Failure> {
    serde_json::to_vec_pretty(owner).map_err(|error| refused(error.to_string()))
}
