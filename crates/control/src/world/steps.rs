//! Steps of application masters and Tubos, and the resulting orders to the engine.

use super::{CLOCKS, Event, World};
use crate::app;
use crate::message::{Endpoint, Note, Output, Units};
use crate::setup::{AppId, RoleId};
use crate::tubo::{self, Tubo};
use plimsoll_base::units::MachineId;

impl World {
    /// Makes a step of the master of an application with this epoch; epoch 0 is the newest.
    pub(super) fn app_input(&mut self, app: AppId, epoch: u32, input: app::AppInput) {
        let Some(masters) = self.apps.get_mut(&app) else { return };
        let epoch = if epoch == 0 { masters.epoch } else { epoch };
        let found = masters.alive.iter().position(|master| master.epoch == epoch);
        let Some(found) = found else {
            // The request of the application is part of its own state, also while it has no master.
            if let app::AppInput::Want(role, count) = input {
                match &mut masters.dead {
                    Some(dead) => dead.want.set(role, count),
                    None => masters.first.push((role, count)),
                }
            }
            return;
        };
        let master = masters.alive.remove(found);
        let away = self.script.patience.map(|patience| (patience, master.away.clone()));
        let (master, outputs) = master.step(&self.setup, input);
        if let Some((patience, before)) = away {
            let lost: Vec<MachineId> = master.away.difference(&before).copied().collect();
            for machine in lost {
                self.after(patience, CLOCKS, Event::Patience(app, machine));
            }
        }
        let node = Endpoint::App(app, master.epoch);
        self.watch.app_stepped(&self.setup, &master, &outputs, &self.tubos);
        let Some(masters) = self.apps.get_mut(&app) else { return };
        if !master.fenced {
            masters.alive.insert(found, master);
        } else if masters.dead.as_ref().is_none_or(|dead| dead.epoch < master.epoch) {
            masters.dead = Some(master);
        }
        // Completions that a superseded master receives do not count, since its successor has no record of them.
        let newest = masters.epoch == epoch;
        for output in outputs.iter().filter(|_| newest) {
            if let Output::Note(Note::Finished(units)) = output {
                self.finished(app, *units);
            }
        }
        self.arm_app(app);
        self.act(node, outputs);
    }

    /// Processes completions that an application master has received. If a worker was stopped in the meantime, its task is repeated.
    pub(super) fn finished(&mut self, app: AppId, units: Units<u32>) {
        let over = self.places.finished((units.machine, units.role), units.count);
        self.watch.work.wants(self.now, units.role, false, -i64::from(over));
        if let Some(line) = self.lines.get_mut(&units.role) {
            line.left -= over;
        }
        if over < units.count
            && let Some(master) = self.newest(app)
        {
            let count = master.want.get(units.role) + units.count - over;
            self.app_input(app, 0, app::AppInput::Want(units.role, count));
        }
    }

    pub(super) fn tubo_input(&mut self, machine: MachineId, input: tubo::TuboInput) {
        let tubo = std::mem::replace(&mut self.tubos[machine.index()], Tubo::new(machine));
        let (tubo, outputs) = tubo.step(&self.setup, input);
        self.tubos[machine.index()] = tubo;
        for output in &outputs {
            match output {
                Output::Note(Note::Started(Units { role, count, .. })) => {
                    self.started((machine, *role), *count);
                }
                Output::Note(Note::Stopped(Units { role, count, .. }) | Note::Failed(Units { role, count, .. })) => {
                    let (stopped, lost) = self.places.stopped((machine, *role), *count);
                    self.watch.work.lost(*role, stopped, lost);
                }
                _ => {}
            }
        }
        self.after_tubo(machine, &outputs);
        self.draw_worker_failure(machine);
        self.arm_tubo(machine);
        self.act(Endpoint::Tubo(machine), outputs);
    }

    /// Processes the start of workers. They use only units that FuxiMaster has granted. If units of completed tasks have not been revoked,
    /// the application master reuses these.
    pub(super) fn started(&mut self, at: (MachineId, RoleId), count: u32) {
        let later = self.postponed.iter().filter(|units| (units.machine, units.role) == at);
        let later = later.map(|units| units.count).sum::<u32>();
        let beyond = (count + later).saturating_sub(self.places.waiting(at)).min(later);
        let mut again = self.places.free_over(at, beyond);
        for units in self.postponed.iter_mut().filter(|units| (units.machine, units.role) == at) {
            let count = units.count.min(again);
            units.count -= count;
            again -= count;
        }
        self.postponed.retain(|units| units.count > 0);
        self.places.started(at, self.lines.get(&at.1).copied(), count);
    }
}
